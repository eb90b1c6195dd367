"""Transforms template.yaml as CloudFormation would, and checks what comes out:
that no function may do more than it needs, and that nothing gets lost on the way
from a source to its function. Writes the transformed template to the file named by
the argument."""

import copy
import json
import pathlib
import re
import sys

import boto3
from samtranslator.parser.parser import Parser
from samtranslator.translator.translator import Translator
from samtranslator.yaml_helper import yaml_parse

HERE = pathlib.Path(__file__).parent
ROOT = HERE.parent

# What a function may do besides taking its locks and writing its log. Those who
# poll a queue or a stream need it for that, "sqs:SendMessage" is for the failures.
EXTRA = {
    "S3Upload": {"s3:GetObject", "s3:PutObject", "sqs:SendMessage"},
    "SQSOrders": {"sqs:ReceiveMessage", "sqs:DeleteMessage", "sqs:GetQueueAttributes"},
    "FIFOCustomer": {"sqs:ReceiveMessage", "sqs:DeleteMessage", "sqs:GetQueueAttributes"},
    "Schedule": {"sqs:SendMessage"},
    "API": set(),
    "Kinesis": {
        "kinesis:GetRecords", "kinesis:GetShardIterator", "kinesis:DescribeStream",
        "kinesis:DescribeStreamSummary", "kinesis:ListShards", "sqs:SendMessage",
    },
    "SNSFanout": {"sqs:SendMessage"},
    "URLStream": set(),
    "Nested": {"sqs:SendMessage"},
    "Fenced": {"dynamodb:UpdateItem", "s3:PutObject", "sqs:SendMessage"},
    "Mutex": set(),
}

# Programs that are there for something else than a source.
WITHOUT_FUNCTION = {"local", "unittest"}

errors = []


def need(condition, message):
    if not condition:
        errors.append(message)


def transform(template):
    """The template without SAM. Code must be in S3 for that, where sam deploy puts it."""
    template = copy.deepcopy(template)
    template["Globals"]["Function"]["CodeUri"] = "s3://bucket/key"
    session = boto3.Session(region_name="us-east-1")
    return Translator({}, Parser(), boto_session=session).translate(template, {"Architecture": "arm64"})


def as_list(value):
    return value if isinstance(value, list) else [value]


def attribute(value, name="Arn"):
    """The logical id in a !GetAtt of an attribute, in whichever form it is written."""
    target = value.get("Fn::GetAtt") if isinstance(value, dict) else None
    if isinstance(target, str):
        target = target.split(".")
    return target[0] if target and target[1] == name else None


def check_role(name, function, role):
    """Exactly the lock table's one statement, and what EXTRA grants."""
    managed = json.dumps(role.get("ManagedPolicyArns", []))
    need(managed.count(":iam::aws:policy/") == 1 and "AWSLambdaBasicExecutionRole" in managed,
         f"{name}: managed policies {managed}")
    statements = [s for p in role.get("Policies", []) for s in as_list(p["PolicyDocument"]["Statement"])]
    locks = [s for s in statements if attribute(s["Resource"]) == "LockTable"]
    own = {"Fn::Sub": function["FunctionName"]["Fn::Sub"] + "/*"}
    need(locks == [{
        "Effect": "Allow",
        "Action": "dynamodb:UpdateItem",
        "Resource": locks[0]["Resource"] if locks else None,
        "Condition": {"ForAllValues:StringLike": {"dynamodb:LeadingKeys": own}, "Null": {"dynamodb:LeadingKeys": "false"}},
    }], f"{name}: wants dynamodb:UpdateItem on its own rows of the lock table, has {locks}")
    others = [s for s in statements if s not in locks]
    actions = {a for s in others for a in as_list(s["Action"])}
    need(actions == EXTRA.get(name), f"{name}: may do {sorted(actions)}, expected {EXTRA.get(name)}")
    for s in others:
        need("*" not in as_list(s["Resource"]), f"{name}: {s['Action']} on everything")


def check_mapping(name, mapping, functions, resources):
    """A queue or a stream."""
    function = functions[mapping["FunctionName"]["Ref"]]
    need(mapping.get("FunctionResponseTypes") == ["ReportBatchItemFailures"], f"{name}: no partial answers")
    source = resources[attribute(mapping["EventSourceArn"])]
    if source["Type"] == "AWS::SQS::Queue":
        queue = source["Properties"]
        need(queue.get("VisibilityTimeout", 30) >= 6 * function["Timeout"],
             f"{name}: visibility timeout below six times the function's timeout")
        redrive = queue.get("RedrivePolicy", {})
        dead = resources.get(attribute(redrive.get("deadLetterTargetArn")), {})
        need(redrive.get("maxReceiveCount", 0) >= 5 and dead.get("Type") == "AWS::SQS::Queue",
             f"{name}: no dead-letter queue after five attempts")
        need(dead.get("Properties", {}).get("FifoQueue") == queue.get("FifoQueue"),
             f"{name}: one of the queue and its dead-letter queue is FIFO, the other not")
    else:
        for limit in ("BisectBatchOnFunctionError", "MaximumRetryAttempts", "MaximumRecordAgeInSeconds"):
            need(mapping.get(limit, -1) not in (-1, False), f"{name}: one bad record stops the shard: no {limit}")
        need("OnFailure" in mapping.get("DestinationConfig", {}), f"{name}: no failure destination")


def main():
    template = yaml_parse((HERE / "template.yaml").read_text())
    transformed = transform(template)
    pathlib.Path(sys.argv[1]).write_text(json.dumps(transformed, indent=1))
    resources = transformed["Resources"]

    def of_type(kind):
        return {n: r["Properties"] for n, r in resources.items() if r["Type"] == kind}

    functions = of_type("AWS::Lambda::Function")
    programs = {m.parent.name for m in ROOT.glob("examples/*/main.go")} - WITHOUT_FUNCTION
    need({n.lower() for n in functions} == programs,
         f"functions {sorted(functions)} do not match the programs {sorted(programs)}")
    local = json.loads((HERE / "env.json").read_text())
    for name, function in functions.items():
        need(template["Resources"][name].get("Metadata") == {"BuildMethod": "makefile"}, f"{name}: not built by make")
        variables = function["Environment"]["Variables"]
        need(variables["AWS_ENDPOINT_URL_DYNAMODB"] == "", f"{name}: has an endpoint where it is deployed")
        unknown = {**local["Parameters"], **local.get(name, {})}.keys() - variables.keys()
        need(not unknown, f"{name}: sam local ignores {unknown} of env.json, which the template lacks")
        check_role(name, function, resources[attribute(function["Role"])]["Properties"])
    for name, mapping in of_type("AWS::Lambda::EventSourceMapping").items():
        check_mapping(name, mapping, functions, resources)

    handled = {c["FunctionName"]["Ref"] for c in of_type("AWS::Lambda::EventInvokeConfig").values()
               if "OnFailure" in c.get("DestinationConfig", {})}
    for name, permission in of_type("AWS::Lambda::Permission").items():
        if re.match("(s3|sns|events)[.]", permission.get("Principal", "")):
            function = permission["FunctionName"]
            function = function.get("Ref") or attribute(function)
            need(function in handled, f"{function}: asynchronous, and without a failure destination")

    for e in errors:
        print(f"template.yaml: {e}", file=sys.stderr)
    return 1 if errors else 0


sys.exit(main())
