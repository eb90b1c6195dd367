"""moto's server, with what its CloudFormation lacks of the templates that the
tests deploy: resources, and properties that it drops.

moto takes every class that inherits from CloudFormationModel for a resource.
"""

import os
import sys

from moto.awslambda.models import EventSourceMapping, LambdaFunction, lambda_backends
from moto.cloudformation.models import Stack
from moto.cloudwatch.models import cloudwatch_backends
from moto.core.common_models import CloudFormationModel
from moto.dynamodb.models import dynamodb_backends
from moto.dynamodb.models.table import Table
from moto.kinesis.models import Stream, kinesis_backends
from moto.logs.models import logs_backends
from moto.server import main
from moto.sqs.models import Queue


def after(model, change):
    """Lets change see each resource that model's template makes."""
    create = model.create_from_cloudformation_json

    def created(cls, name, template, account, region, **kwargs):
        properties = template["Properties"]
        resource = create(name, template, account, region, **kwargs)
        change(resource, properties, account, region)
        return resource

    model.create_from_cloudformation_json = classmethod(created)


def live(table, properties, account, region):
    if "TimeToLiveSpecification" in properties:
        dynamodb_backends[account][region].update_time_to_live(table.name, properties["TimeToLiveSpecification"])


def keep(function, properties, account, region):
    function.kept = {name: properties[name] for name in ("DeadLetterConfig", "LoggingConfig") if name in properties}


def retain(stream, properties, account, region):
    stream.retention_period_hours = properties.get("RetentionPeriodHours", 24)


def suffix(create):
    """Ends the name of a FIFO queue, which CloudFormation generates."""

    def created(cls, name, template, account, region, **kwargs):
        fifo = template["Properties"].get("FifoQueue") and not name.endswith(".fifo")
        return create(name + ".fifo" if fifo else name, template, account, region, **kwargs)

    return classmethod(created)


Queue.create_from_cloudformation_json = suffix(Queue.create_from_cloudformation_json)
after(Table, live)
after(LambdaFunction, keep)
after(Stream, retain)

configuration = LambdaFunction.get_configuration
LambdaFunction.get_configuration = lambda f, *args, **kwargs: configuration(f, *args, **kwargs) | getattr(f, "kept", {})


class Source(EventSourceMapping):
    """A mapping of any source. moto refuses Kafka, and what is in no account."""

    __module__ = EventSourceMapping.__module__  # moto files its models by it

    event_source_arn = property(lambda self: self.arn_of_source, lambda self, arn: setattr(self, "arn_of_source", arn))
    batch_size = property(lambda self: 10, lambda self, size: None)

    @classmethod
    def made(cls, name, template, account, region, **kwargs):
        backend, spec = lambda_backends[account][region], template["Properties"]
        function = backend.get_function(spec["FunctionName"])
        mapping = cls(spec | {"RegionName": region, "AccountId": account, "FunctionArn": function.function_arn})
        backend._event_source_mappings[mapping.uuid] = mapping
        return mapping


EventSourceMapping.create_from_cloudformation_json = Source.made


known = []  # moto looks for classes, which nothing else keeps


def resource(kind, make, attributes=None):
    """Teaches CloudFormation a kind of resource. make returns its physical id."""

    def create(cls, name, template, account, region, **kwargs):
        made = cls()
        made.physical_resource_id = make(name, template["Properties"], account, region)
        return made

    known.append(type(kind.replace("::", ""), (CloudFormationModel,), {
        "__module__": CloudFormationModel.__module__,
        "cloudformation_type": staticmethod(lambda: kind),
        "cloudformation_name_type": staticmethod(lambda: "Name"),
        "create_from_cloudformation_json": classmethod(create),
        "has_cfn_attr": classmethod(lambda cls, attribute: attribute in (attributes or [])),
        "get_cfn_attribute": lambda self, attribute: self.physical_resource_id,
    }))


def configure(name, properties, account, region):
    lambda_backends[account][region].put_function_event_invoke_config(properties["FunctionName"], dict(properties))
    return name


def count(name, properties, account, region):
    transformations = [{key[0].lower() + key[1:]: value for key, value in t.items()} for t in properties["MetricTransformations"]]
    logs_backends[account][region].put_metric_filter(name, properties["FilterPattern"], properties["LogGroupName"], transformations)
    return name


def watch(name, properties, account, region):
    alarm = properties.get
    cloudwatch_backends[account][region].put_metric_alarm(
        name, alarm("Namespace"), alarm("MetricName"), alarm("ComparisonOperator"), alarm("EvaluationPeriods"), alarm("Period"),
        alarm("Threshold"), alarm("Statistic"), alarm("AlarmDescription"), [], alarm("AlarmActions") or [],
        ok_actions=alarm("OKActions") or [], treat_missing_data=alarm("TreatMissingData"),
    )
    return name


def consume(name, properties, account, region):
    return kinesis_backends[account][region].register_stream_consumer(properties["StreamARN"], properties["ConsumerName"]).consumer_arn


resource("AWS::Lambda::EventInvokeConfig", configure)
resource("AWS::Logs::MetricFilter", count)
resource("AWS::CloudWatch::Alarm", watch)
resource("AWS::Kinesis::StreamConsumer", consume, ["ConsumerARN"])


class ManagedPolicies:
    """The policies that a SAM template names without their ARN: none."""

    def load(self):
        return {}


parse = Stack.parse_template


def transformed(text):
    template = parse(text)
    if template.pop("Transform", None) == "AWS::Serverless-2016-10-31":
        from samtranslator.translator.transform import transform  # takes a second

        os.environ.setdefault("AWS_DEFAULT_REGION", "eu-west-1")  # which it asks for
        return transform(template, {}, ManagedPolicies())
    return template


Stack.parse_template = staticmethod(transformed)

if __name__ == "__main__":
    main(sys.argv[1:])
