"""Transforms template.yaml as CloudFormation would, and checks the result: no
function has more permissions than it needs, and no event gets lost between its
source and the function. Writes the transformed template to the file that the
argument names."""

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

# What reading a queue or a stream takes.
QUEUE = {"sqs:ReceiveMessage", "sqs:DeleteMessage", "sqs:GetQueueAttributes"}
STREAM = {
    "kinesis:GetRecords", "kinesis:GetShardIterator", "kinesis:DescribeStream",
    "kinesis:DescribeStreamSummary", "kinesis:ListShards",
}

# What a function may do besides locking and logging; sqs:SendMessage is for failed
# events.
EXTRA = {
    "S3Upload": {"s3:GetObject", "s3:PutObject", "sqs:SendMessage"},
    "NothingToDo": {"sqs:SendMessage"},
    "Thumbnail": {"sqs:SendMessage"},
    "Email": QUEUE,
    "Debounce": QUEUE,
    "SQSOrders": QUEUE,
    "Transfer": QUEUE | {"dynamodb:UpdateItem"},
    "Outbox": QUEUE | {"dynamodb:PutItem"},
    "Bulk": QUEUE,
    "Throttled": QUEUE | {"sqs:ChangeMessageVisibility", "sqs:SendMessage"},
    "FIFOCustomer": QUEUE,
    "Schedule": {"sqs:SendMessage"},
    "API": set(),
    "Cooldown": set(),
    "Quote": set(),
    "Upload": set(),
    "Kinesis": STREAM | {"sqs:SendMessage"},
    "Poison": STREAM | {"s3:PutObject", "sqs:SendMessage"},
    "Burst": STREAM | {"sqs:SendMessage"},
    "SNSFanout": {"sqs:SendMessage"},
    "URLStream": set(),
    "Nested": {"sqs:SendMessage"},
    "Latest": {"sqs:SendMessage"},
    "Limit": {"sqs:SendMessage"},
    "Several": {"sqs:SendMessage"},
    "Fenced": {"dynamodb:UpdateItem", "s3:PutObject", "sqs:SendMessage"},
    "Mutex": set(),
}

# What a function may do with its own rows of the lock table, if not only
# dynamodb:UpdateItem.
LOCKING = {"Bulk": ["dynamodb:UpdateItem", "dynamodb:PartiQLInsert", "dynamodb:PartiQLUpdate"]}

# Programs that have no event source, that are no functions, that invoke a durable
# function, which sam local does not run, or that need a bank or Stripe, which the
# sandbox has not.
WITHOUT_FUNCTION = {"unittest", "worker", "durablestart", "payment", "stripe"}

errors = []


def need(condition, message):
    if not condition:
        errors.append(message)


def transform(template):
    """Returns the template as plain CloudFormation. The translator requires code in S3, where
    sam deploy puts it."""
    template = copy.deepcopy(template)
    template["Globals"]["Function"]["CodeUri"] = "s3://bucket/key"
    session = boto3.Session(region_name="us-east-1")
    return Translator({}, Parser(), boto_session=session).translate(template, {"Architecture": "arm64"})


def as_list(value):
    return value if isinstance(value, list) else [value]


def attribute(value, name="Arn"):
    """Returns the logical id in a !GetAtt of an attribute, in any of its forms."""
    target = value.get("Fn::GetAtt") if isinstance(value, dict) else None
    if isinstance(target, str):
        target = target.split(".")
    return target[0] if target and target[1] == name else None


def check_role(name, function, role):
    """Checks that a role has one statement on the lock table, and what EXTRA grants."""
    managed = json.dumps(role.get("ManagedPolicyArns", []))
    need(managed.count(":iam::aws:policy/") == 1 and "AWSLambdaBasicExecutionRole" in managed,
         f"{name}: managed policies {managed}")
    statements = [s for p in role.get("Policies", []) for s in as_list(p["PolicyDocument"]["Statement"])]
    locks = [s for s in statements if attribute(s["Resource"]) == "LockTable"]
    own = {"Fn::Sub": function["FunctionName"]["Fn::Sub"] + "/*"}
    need(locks == [{
        "Effect": "Allow",
        "Action": LOCKING.get(name, "dynamodb:UpdateItem"),
        "Resource": locks[0]["Resource"] if locks else None,
        "Condition": {"ForAllValues:StringLike": {"dynamodb:LeadingKeys": own}, "Null": {"dynamodb:LeadingKeys": "false"}},
    }], f"{name}: must have {LOCKING.get(name, 'dynamodb:UpdateItem')} on its own rows of the lock table, has {locks}")
    others = [s for s in statements if s not in locks]
    actions = {a for s in others for a in as_list(s["Action"])}
    need(actions == EXTRA.get(name), f"{name}: may do {sorted(actions)}, expected {EXTRA.get(name)}")
    for s in others:
        need("*" not in as_list(s["Resource"]), f"{name}: may {s['Action']} on every resource")


def check_mapping(name, mapping, functions, resources):
    """Checks the event source mapping of a queue or a stream."""
    function = functions[mapping["FunctionName"]["Ref"]]
    need(mapping.get("FunctionResponseTypes") == ["ReportBatchItemFailures"], f"{name}: does not take partial answers")
    source = resources[attribute(mapping["EventSourceArn"])]
    if source["Type"] == "AWS::SQS::Queue":
        queue = source["Properties"]
        need(queue.get("VisibilityTimeout", 30) >= 6 * function["Timeout"] + mapping.get("MaximumBatchingWindowInSeconds", 0),
             f"{name}: its visibility timeout is below six times the function's timeout and the batching window")
        redrive = queue.get("RedrivePolicy", {})
        dead = resources.get(attribute(redrive.get("deadLetterTargetArn")), {})
        need(redrive.get("maxReceiveCount", 0) >= 5 and dead.get("Type") == "AWS::SQS::Queue",
             f"{name}: has no dead-letter queue with at least five attempts")
        need(dead.get("Properties", {}).get("FifoQueue") == queue.get("FifoQueue"),
             f"{name}: only one of the queue and its dead-letter queue is FIFO")
    else:
        for limit in ("BisectBatchOnFunctionError", "MaximumRetryAttempts", "MaximumRecordAgeInSeconds"):
            need(mapping.get(limit, -1) not in (-1, False), f"{name}: a failing record blocks its shard without {limit}")
        need("OnFailure" in mapping.get("DestinationConfig", {}), f"{name}: has no failure destination")


def check_function(name, function, template, resources):
    """Checks how a function is built, its variables and its role."""
    need(template["Resources"][name].get("Metadata") == {"BuildMethod": "makefile"}, f"{name}: is not built by make")
    variables = function["Environment"]["Variables"]
    need(variables["AWS_ENDPOINT_URL_DYNAMODB"] == "", f"{name}: sets an endpoint, which would apply in AWS too")
    local = json.loads((HERE / "env.json").read_text())
    unknown = {**local["Parameters"], **local.get(name, {})}.keys() - variables.keys()
    need(not unknown, f"{name}: sam local ignores {unknown} in env.json, because the template does not declare it")
    check_role(name, function, resources[attribute(function["Role"])]["Properties"])


def check_async(permissions, configs):
    """Checks that every function that is invoked asynchronously has a failure destination."""
    handled = {c["FunctionName"]["Ref"] for c in configs if "OnFailure" in c.get("DestinationConfig", {})}
    for permission in permissions:
        if re.match("(s3|sns|events)[.]", permission.get("Principal", "")):
            function = permission["FunctionName"]
            function = function.get("Ref") or attribute(function)
            need(function in handled, f"{function}: is invoked asynchronously without a failure destination")


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
    for name, function in functions.items():
        check_function(name, function, template, resources)
    for name, mapping in of_type("AWS::Lambda::EventSourceMapping").items():
        check_mapping(name, mapping, functions, resources)
    check_async(of_type("AWS::Lambda::Permission").values(), of_type("AWS::Lambda::EventInvokeConfig").values())

    for e in errors:
        print(f"template.yaml: {e}", file=sys.stderr)
    return 1 if errors else 0


sys.exit(main())
