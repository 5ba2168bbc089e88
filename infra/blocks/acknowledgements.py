"""Findings of cdk-nag that we accept, each with its reason."""

from collections.abc import Mapping

import aws_cdk as cdk
from constructs import IConstruct


def acknowledge(scope: IConstruct, reasons: Mapping[str, str]) -> None:
    """Accept rules for a construct and all below it: rule id → reason."""
    cdk.Validations.of(scope).acknowledge(
        *(cdk.Acknowledgment(id=rule, reason=reason) for rule, reason in reasons.items())
    )
