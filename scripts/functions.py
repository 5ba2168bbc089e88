"""The emulator's Lambda processes, found by their command line and killed for tests and demo."""

import psutil

from scripts.emulator import SCRATCH


def processes_of(function: str) -> list[psutil.Process]:
    """Give the live processes of a function, by its full name, of this local system alone."""
    marker = f"{SCRATCH}/ministack-lambda-{function}-"
    found = []
    for process in psutil.process_iter():
        try:
            if any(argument.startswith(marker) for argument in process.cmdline()):
                found.append(process)
        except (psutil.AccessDenied, psutil.NoSuchProcess, psutil.ZombieProcess):
            continue
    return found


def kill_function(function: str) -> int:
    """Kill every process of a function as a lost machine would; gives how many there were."""
    killed = 0
    for process in processes_of(function):
        try:
            process.kill()
        except psutil.NoSuchProcess:
            continue
        killed += 1
    return killed
