"""What calls a person, and where they hear of it."""

import aws_cdk as cdk
from aws_cdk import aws_cloudwatch as cloudwatch
from aws_cdk import aws_cloudwatch_actions as actions
from aws_cdk import aws_iam as iam
from aws_cdk import aws_kms as kms
from aws_cdk import aws_sns as sns
from constructs import Construct

from infra.environments import Environment

RUNBOOKS = "docs/runbooks"
PERIOD_MINUTES = 5
UNKNOWN_PERIODS = 3
ALARMS_SPEAK = "cloudwatch.amazonaws.com"


class Alarms(Construct):
    """Alarms on what functions measure; people subscribe to `topic` by themselves."""

    def __init__(self, scope: Construct, construct_id: str, *, environment: Environment) -> None:
        super().__init__(scope, construct_id)
        self._environment = environment
        self.topic = self._topic()
        self._hear(self._zone_rules_behind())
        self._hear(self._zone_rules_unknown())

    def _topic(self) -> sns.Topic:
        # A key of our own: alarms cannot publish to a topic under the key that AWS manages.
        key = kms.Key(
            self,
            "Key",
            description=f"Alarms of {self._environment.prefix}",
            enable_key_rotation=True,
            removal_policy=(
                cdk.RemovalPolicy.DESTROY
                if self._environment.disposable
                else cdk.RemovalPolicy.RETAIN
            ),
        )
        topic = sns.Topic(
            self,
            "Topic",
            topic_name=f"{self._environment.prefix}-alarms",
            master_key=key,
            enforce_ssl=True,
        )
        speaker = iam.ServicePrincipal(
            ALARMS_SPEAK, conditions={"StringEquals": {"aws:SourceAccount": cdk.Aws.ACCOUNT_ID}}
        )
        topic.grant_publish(speaker)
        key.grant(speaker, "kms:Decrypt", "kms:GenerateDataKey*")
        return topic

    def _zone_rules_behind(self) -> cloudwatch.Alarm:
        return cloudwatch.Alarm(
            self,
            "ZoneRulesBehind",
            alarm_name=f"{self._environment.prefix}-zone-rules-behind",
            alarm_description=(
                "Stored next fires may follow other zone rules than the deployed ones: run"
                f" `make replan ENV={self._environment.name}` ({RUNBOOKS}/zone-rules.md)."
            ),
            metric=self._measure(cloudwatch.Stats.MAXIMUM),
            threshold=1,
            comparison_operator=cloudwatch.ComparisonOperator.GREATER_THAN_OR_EQUAL_TO_THRESHOLD,
            evaluation_periods=1,
            # Ticks that do not come, or cannot tell, neither raise this alarm nor end it.
            treat_missing_data=cloudwatch.TreatMissingData.IGNORE,
        )

    def _zone_rules_unknown(self) -> cloudwatch.Alarm:
        """The other alarm keeps what it said last, and a tick that cannot tell does not fail."""
        return cloudwatch.Alarm(
            self,
            "ZoneRulesUnknown",
            alarm_name=f"{self._environment.prefix}-zone-rules-unknown",
            alarm_description=(
                "No tick has told for 15 minutes whether stored next fires follow the deployed"
                f" zone rules ({RUNBOOKS}/zone-rules.md)."
            ),
            metric=self._measure(cloudwatch.Stats.SAMPLE_COUNT),
            threshold=1,
            comparison_operator=cloudwatch.ComparisonOperator.LESS_THAN_THRESHOLD,
            evaluation_periods=UNKNOWN_PERIODS,
            treat_missing_data=cloudwatch.TreatMissingData.BREACHING,
        )

    def _measure(self, statistic: str) -> cloudwatch.Metric:
        return cloudwatch.Metric(
            namespace=self._environment.prefix,
            metric_name="ZoneRulesBehind",
            dimensions_map={"service": "ticker"},
            statistic=statistic,
            period=cdk.Duration.minutes(PERIOD_MINUTES),
        )

    def _hear(self, alarm: cloudwatch.Alarm) -> None:
        action = actions.SnsAction(self.topic)
        alarm.add_alarm_action(action)
        alarm.add_ok_action(action)
