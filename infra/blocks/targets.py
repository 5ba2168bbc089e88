"""What it takes to deliver to tenants' targets: the same for the executor and for a try."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import aws_cdk as cdk
from aws_cdk import aws_iam as iam
from aws_cdk import aws_secretsmanager as secretsmanager
from constructs import IConstruct

from infra.blocks import grants
from infra.blocks.acknowledgements import acknowledge

NAMES = "puntual-target-*"

# What follows `arn:<partition>:` → actions.
ACTIONS: Mapping[str, Sequence[str]] = {
    f"sqs:*:*:{NAMES}": ("GetQueueUrl", "SendMessage"),
    f"sns:*:*:{NAMES}": ("Publish",),
    f"events:*:*:event-bus/{NAMES}": ("PutEvents",),
    f"lambda:*:*:function:{NAMES}": ("InvokeFunction",),
    f"states:*:*:stateMachine:{NAMES}": ("StartExecution",),
    f"iam::*:role/{NAMES}": ("AssumeRole", "TagSession"),
}

REGISTERED = (
    "Tenants' targets are registered at run time, in accounts of their own; the name's prefix,"
    " and the resource's own policy, say which take part."
)
ASSUMED = (
    "Tenants' roles are registered at run time, in accounts of their own; the name's prefix keeps"
    " all other roles out, and the role's trust policy asks for the tenant's external id."
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Targets:
    root_secret: secretsmanager.Secret

    @property
    def permissions(self) -> Sequence[iam.PolicyStatement]:
        return [
            *(
                grants.on_targets(
                    _service_of(resources), f"arn:{cdk.Aws.PARTITION}:{resources}", *actions
                )
                for resources, actions in ACTIONS.items()
            ),
            grants.read_secret(self.root_secret),
        ]

    def acknowledge(self, scope: IConstruct) -> None:
        """Accept the wildcards that the permissions have, for a construct whose role has them."""
        acknowledge(
            scope,
            {
                f"AwsSolutions-IAM5[Resource::arn:<AWS::Partition>:{resources}]": (
                    ASSUMED if _service_of(resources) == "sts" else REGISTERED
                )
                for resources in ACTIONS
            },
        )


def _service_of(resources: str) -> str:
    """Give the service that the actions belong to; roles are IAM's, but assumed through STS."""
    service = resources.split(":", maxsplit=1)[0]
    return "sts" if service == "iam" else service
