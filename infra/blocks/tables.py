"""The tables: one purpose each, so that permissions, capacity and streams stay separate."""

from collections.abc import Mapping
from dataclasses import dataclass

import aws_cdk as cdk
from aws_cdk import aws_dynamodb as dynamodb
from constructs import Construct

from infra.blocks.acknowledgements import acknowledge
from infra.environments import Environment

BY_TENANT = "by_tenant"
BY_SPREAD = "by_spread"
BY_ITEM = "by_item"

TEXT = dynamodb.AttributeType.STRING
NUMBER = dynamodb.AttributeType.NUMBER

type Key = tuple[str, dynamodb.AttributeType]


@dataclass(frozen=True, slots=True, kw_only=True)
class Shape:
    partition: Key
    sort: Key | None = None
    expires_at: str | None = None
    streamed: bool = False
    # Read and written by hand or once a minute: warming it up would cost and do nothing.
    quiet: bool = False


class Tables(Construct):
    def __init__(self, scope: Construct, construct_id: str, *, environment: Environment) -> None:
        super().__init__(scope, construct_id)
        self._environment = environment
        by_schedule = ("tenant_schedule", TEXT)
        self.schedules = self._table("schedules", Shape(partition=by_schedule))
        self._index_schedules(BY_TENANT, "schedule", dynamodb.ProjectionType.ALL)
        # Sparse: only active schedules have the attribute.
        self._index_schedules(BY_SPREAD, "spread", dynamodb.ProjectionType.KEYS_ONLY)
        self.versions = self._table(
            "schedule-versions", Shape(partition=by_schedule, sort=("version", NUMBER))
        )
        self.agenda = self._table(
            "agenda", Shape(partition=("bucket", TEXT), sort=("cursor", TEXT))
        )
        self.outbox = self._table(
            "outbox", Shape(partition=("shard", NUMBER), sort=("page", TEXT), streamed=True)
        )
        self.occurrences = self._table(
            "occurrences",
            Shape(partition=by_schedule, sort=("run", TEXT), expires_at="expires_at"),
        )
        self.shards = self._table("shards", Shape(partition=("shard", NUMBER)))
        self.tenants = self._table(
            "tenants", Shape(partition=("tenant", TEXT), sort=("item", TEXT))
        )
        self._index_tenants()
        self.zone_releases = self._table(
            "zone-releases", Shape(partition=("item", TEXT), quiet=True)
        )
        # The layout of Powertools' idempotency store.
        self.idempotency = self._table(
            "idempotency", Shape(partition=("id", TEXT), expires_at="expiration")
        )
        if environment.disposable:
            acknowledge(self, {"AwsSolutions-DDB3": "Nothing in this environment is to be kept."})

    def names(self) -> Mapping[str, str]:
        """Settings of the functions: which table is which."""
        return {
            "SCHEDULES_TABLE": self.schedules.table_name,
            "VERSIONS_TABLE": self.versions.table_name,
            "AGENDA_TABLE": self.agenda.table_name,
            "OUTBOX_TABLE": self.outbox.table_name,
            "OCCURRENCES_TABLE": self.occurrences.table_name,
            "SHARDS_TABLE": self.shards.table_name,
            "TENANTS_TABLE": self.tenants.table_name,
            "ZONE_RELEASES_TABLE": self.zone_releases.table_name,
            "IDEMPOTENCY_TABLE": self.idempotency.table_name,
        }

    def _table(self, name: str, shape: Shape) -> dynamodb.Table:
        environment = self._environment
        return dynamodb.Table(
            self,
            "".join(word.capitalize() for word in name.split("-")),
            table_name=f"{environment.prefix}-{name}",
            partition_key=_attribute(shape.partition),
            sort_key=_attribute(shape.sort) if shape.sort else None,
            billing_mode=dynamodb.BillingMode.PAY_PER_REQUEST,
            encryption=dynamodb.TableEncryption.AWS_MANAGED,
            time_to_live_attribute=shape.expires_at,
            stream=dynamodb.StreamViewType.NEW_IMAGE if shape.streamed else None,
            point_in_time_recovery_specification=dynamodb.PointInTimeRecoverySpecification(
                point_in_time_recovery_enabled=not environment.disposable
            ),
            deletion_protection=not environment.disposable,
            removal_policy=(
                cdk.RemovalPolicy.DESTROY if environment.disposable else cdk.RemovalPolicy.RETAIN
            ),
            warm_throughput=None if shape.quiet else self._warm_throughput(),
        )

    def _index_schedules(self, name: str, sort: str, holds: dynamodb.ProjectionType) -> None:
        """Index the schedules of each tenant by one of their attributes."""
        self.schedules.add_global_secondary_index(
            index_name=name,
            partition_key=dynamodb.Attribute(name="tenant", type=TEXT),
            sort_key=dynamodb.Attribute(name=sort, type=TEXT),
            projection_type=holds,
            # A cold index throttles the writes of the warm table it belongs to.
            warm_throughput=self._warm_throughput(),
        )

    def _index_tenants(self) -> None:
        """Index the tenants' rows by what they hold, for the listing of all registrations.

        Only registrations have what is projected beside the keys, and only registering writes it:
        counts and budgets, which are written all day, cost nothing here, so it stays cold.
        """
        self.tenants.add_global_secondary_index(
            index_name=BY_ITEM,
            partition_key=dynamodb.Attribute(name="item", type=TEXT),
            sort_key=dynamodb.Attribute(name="tenant", type=TEXT),
            projection_type=dynamodb.ProjectionType.INCLUDE,
            non_key_attributes=["schedules_max", "quotas"],
        )

    def _warm_throughput(self) -> dynamodb.WarmThroughput | None:
        warm = self._environment.warm_throughput
        if warm is None:
            return None
        return dynamodb.WarmThroughput(
            read_units_per_second=warm.read_units, write_units_per_second=warm.write_units
        )


def _attribute(key: Key) -> dynamodb.Attribute:
    name, type_ = key
    return dynamodb.Attribute(name=name, type=type_)
