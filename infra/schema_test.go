package infra_test

import (
	"encoding/json"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/aws/aws-cdk-go/awscdk/v2/awskinesis"
	"github.com/aws/aws-cdk-go/awscdk/v2/awslambda"
	"github.com/aws/aws-cdk-go/awscdk/v2/awssqs"

	"github.com/lambdalock/lambdalock/infra/rules"
)

// concern is what a property is to package rules: which of them judge it, or
// why none does.
type concern struct {
	rules   []string
	because string
}

func judged(rules ...string) concern  { return concern{rules: rules} }
func unjudged(because string) concern { return concern{because: because} }

// names is for a property by which the checks find what they judge.
func names(what string) concern { return concern{because: what} }

// schemas are the resources that decide what a function gets, with all their
// properties, by the names that CloudFormation has for them.
var schemas = map[string]struct {
	props      reflect.Type // of the CDK
	properties map[string]concern
}{
	"AWS::Lambda::EventSourceMapping": {reflect.TypeFor[awslambda.CfnEventSourceMappingProps](), map[string]concern{
		"FunctionName":                        names("the function"),
		"EventSourceArn":                      names("the source"),
		"Topics":                              names("a source that is Kafka"),
		"FunctionResponseTypes":               judged(rules.PartialAnswer),
		"MaximumRetryAttempts":                judged(rules.RetryLimit, rules.RetryAttempts, rules.FailureDestination),
		"MaximumRecordAgeInSeconds":           judged(rules.RetryLimit, rules.FailureDestination),
		"MaximumBatchingWindowInSeconds":      judged(rules.VisibilityTimeout),
		"TumblingWindowInSeconds":             judged(rules.TumblingWindow),
		"DestinationConfig":                   judged(rules.FailureDestination),
		"SelfManagedKafkaEventSourceConfig":   judged(rules.ConsumptionMode),
		"AmazonManagedKafkaEventSourceConfig": unjudged("the group and the schema do not change what is delivered twice"),
		"BatchSize":                           unjudged("a batch has the function's timeout, whatever its size"),
		"BisectBatchOnFunctionError":          unjudged("what was completed is skipped in both halves"),
		"DocumentDBEventSourceConfig":         unjudged("names the collection"),
		"Enabled":                             unjudged("the owner disables it on purpose; doctor names it"),
		"FilterCriteria":                      unjudged("what is filtered out reaches no handler"),
		"KmsKeyArn":                           unjudged("encrypts the filter"),
		"LoggingConfig":                       unjudged("of Lambda's own lines"),
		"MetricsConfig":                       unjudged("counts only"),
		"ParallelizationFactor":               unjudged("records of a partition key stay in order"),
		"ProvisionedPollerConfig":             unjudged("how fast, not how often"),
		"Queues":                              unjudged("a broker's, which is not judged"),
		"ScalingConfig":                       unjudged("how many at a time, not how often"),
		"SelfManagedEventSource":              unjudged("a mapping with Topics is Kafka"),
		"SourceAccessConfigurations":          unjudged("how to connect"),
		"StartingPosition":                    unjudged("what came before reaches no handler"),
		"StartingPositionTimestamp":           unjudged("as StartingPosition"),
		"Tags":                                unjudged("for people"),
	}},
	"AWS::Lambda::EventInvokeConfig": {reflect.TypeFor[awslambda.CfnEventInvokeConfigProps](), map[string]concern{
		"FunctionName":             names("the function"),
		"Qualifier":                names("the alias or version"),
		"DestinationConfig":        judged(rules.FailureDestination),
		"MaximumEventAgeInSeconds": judged(rules.EventAge),
		"MaximumRetryAttempts":     judged(rules.RetryAttempts, rules.AsyncTimeout, rules.EventAge),
	}},
	"AWS::Lambda::Permission": {reflect.TypeFor[awslambda.CfnPermissionProps](), map[string]concern{
		"FunctionName":          names("the function, alias or version"),
		"Principal":             judged(rules.FailureDestination, rules.AsyncTimeout),
		"Action":                unjudged("who may do something else with a function is seldom a service"),
		"EventSourceToken":      unjudged("of Alexa, which waits for the answer"),
		"FunctionUrlAuthType":   unjudged("of a URL, which waits for the answer"),
		"InvokedViaFunctionUrl": unjudged("as FunctionUrlAuthType"),
		"PrincipalOrgID":        unjudged("whose events, not how they come"),
		"SourceAccount":         unjudged("as PrincipalOrgID"),
		"SourceArn":             unjudged("as PrincipalOrgID"),
	}},
	"AWS::Lambda::Function": {reflect.TypeFor[awslambda.CfnFunctionProps](), map[string]concern{
		"FunctionName":                 names("what refers to it by its name"),
		"Environment":                  names("the table and the namespace"),
		"Timeout":                      judged(rules.VisibilityTimeout, rules.AsyncTimeout, rules.EventAge),
		"DeadLetterConfig":             judged(rules.FailureDestination),
		"LoggingConfig":                judged(rules.LogLevel),
		"Architectures":                unjudged("of the machine"),
		"CapacityProviderConfig":       unjudged("locks are held per invocation, however many share a process"),
		"Code":                         unjudged("what a handler does is not seen"),
		"CodeSigningConfigArn":         unjudged("as Code"),
		"Description":                  unjudged("for people"),
		"DurableConfig":                unjudged("WithLock panics around a durable handler"),
		"EphemeralStorage":             unjudged("no lock is in a file"),
		"FileSystemConfigs":            unjudged("as EphemeralStorage"),
		"FunctionScalingConfig":        unjudged("how many at a time, not how often"),
		"Handler":                      unjudged("as Code"),
		"ImageConfig":                  unjudged("as Code"),
		"KmsKeyArn":                    unjudged("encrypts the variables"),
		"Layers":                       unjudged("as Code"),
		"MemorySize":                   unjudged("too little ends a process, whose lock ends by itself"),
		"PackageType":                  unjudged("as Code"),
		"PublishToLatestPublished":     unjudged("which version runs"),
		"RecursiveLoop":                unjudged("ends loops, of which a lock knows nothing"),
		"ReservedConcurrentExecutions": unjudged("0 stops it on purpose; doctor names it"),
		"Role":                         unjudged("Connect gives it the permission, or warns"),
		"Runtime":                      unjudged("as Code"),
		"RuntimeManagementConfig":      unjudged("as Code"),
		"SnapStart":                    unjudged("not for the runtimes of Go"),
		"Tags":                         unjudged("for people"),
		"TenancyConfig":                unjudged("tenants share no process, and locks have names"),
		"TracingConfig":                unjudged("traces only"),
		"VpcConfig":                    unjudged("whether it reaches the table, which its first event shows"),
	}},
	"AWS::Lambda::Alias": {reflect.TypeFor[awslambda.CfnAliasProps](), map[string]concern{
		"FunctionName":                 names("the function"),
		"FunctionVersion":              names("the version"),
		"Name":                         names("what refers to it by its name"),
		"RoutingConfig":                judged(rules.AliasTables), // by doctor: a template has the variables of one version only
		"Description":                  unjudged("for people"),
		"ProvisionedConcurrencyConfig": unjudged("how soon, not how often"),
	}},
	"AWS::SQS::Queue": {reflect.TypeFor[awssqs.CfnQueueProps](), map[string]concern{
		"VisibilityTimeout":             judged(rules.VisibilityTimeout),
		"RedrivePolicy":                 judged(rules.DeadLetterQueue, rules.MaxReceiveCount, rules.DeadLetterRetention),
		"MessageRetentionPeriod":        judged(rules.Retention, rules.DeadLetterRetention),
		"FifoQueue":                     judged(rules.DeadLetterRetention),
		"ContentBasedDeduplication":     unjudged("what the queue drops reaches no handler"),
		"DeduplicationScope":            unjudged("as ContentBasedDeduplication"),
		"DelaySeconds":                  unjudged("before the first delivery"),
		"FifoThroughputLimit":           unjudged("how fast, not how often"),
		"KmsDataKeyReusePeriodSeconds":  unjudged("encrypts"),
		"KmsMasterKeyId":                unjudged("encrypts"),
		"MaximumMessageSize":            unjudged("for senders"),
		"QueueName":                     unjudged("for people"),
		"ReceiveMessageWaitTimeSeconds": unjudged("Lambda asks with its own"),
		"RedriveAllowPolicy":            unjudged("who may name it as a dead-letter queue, which its owner decides"),
		"SqsManagedSseEnabled":          unjudged("encrypts"),
		"Tags":                          unjudged("for people"),
	}},
	"AWS::Kinesis::Stream": {reflect.TypeFor[awskinesis.CfnStreamProps](), map[string]concern{
		"RetentionPeriodHours":       judged(rules.Retention),
		"RecordDistributionStrategy": judged(rules.RecordDistribution), // by doctor: the CDK of go.mod lacks it
		"DesiredShardLevelMetrics":   unjudged("counts only"),
		"MaxRecordSizeInKiB":         judged(rules.RecordSize), // as RecordDistributionStrategy
		"Name":                       unjudged("for people"),
		"ShardCount":                 unjudged("records of a partition key stay in order"),
		"StreamEncryption":           unjudged("encrypts"),
		"StreamModeDetails":          unjudged("as ShardCount"),
		"Tags":                       unjudged("for people"),
		"WarmThroughputMiBps":        unjudged("how fast, not how often"),
	}},
}

// TestSchema: each property of these resources is judged or is of no concern,
// for CloudFormation as cfn-lint knows it and for the CDK. One that is added is
// neither.
func TestSchema(t *testing.T) {
	t.Parallel()
	for kind, of := range schemas {
		known := map[string]string{} // in lower case: the CDK spells some differently
		for name, c := range of.properties {
			if known[strings.ToLower(name)] = name; (len(c.rules) == 0) == (c.because == "") {
				t.Errorf("%s.%s: say which rules judge it, or why none does", kind, name)
			}
		}
		const remedy = "judge it in package rules and read it here and in doctor, or say in this test why it is of no concern"
		for i := range of.props.NumField() {
			if name := of.props.Field(i).Name; known[strings.ToLower(name)] == "" {
				t.Errorf("%s.%s is new in the CDK: %s", kind, name, remedy)
			}
		}
		t.Run(kind, func(t *testing.T) {
			formation := formationSchema(t, kind)
			for _, name := range formation {
				if known[strings.ToLower(name)] == "" {
					t.Errorf("%s.%s is new in CloudFormation: %s", kind, name, remedy)
				}
			}
			for _, name := range known {
				if !slices.Contains(formation, name) {
					t.Errorf("%s.%s does not exist", kind, name)
				}
			}
		})
	}
}

// formationSchema returns the names of the properties of a resource that one
// can set, from the schemas of CloudFormation that cfn-lint has.
func formationSchema(t *testing.T, kind string) (list []string) {
	t.Helper()
	folders, err := filepath.Glob(".venv/lib/python3*/site-packages/cfnlint/data/schemas")
	if err != nil || len(folders) == 0 {
		if os.Getenv("LAMBDALOCK_INTEGRATION") == "required" {
			t.Fatal("cfn-lint is not installed")
		}
		t.Skip("skipped: cfn-lint is not installed; make infra installs it")
	}
	files := map[string]string{} // by the name of the resource
	readJSON(t, filepath.Join(folders[0], "providers", "us-east-1.json"), &files)
	var schema struct {
		Properties         object
		ReadOnlyProperties []string
	}
	readJSON(t, filepath.Join(folders[0], "resources", files[kind]+".json"), &schema)
	for name := range schema.Properties {
		if !slices.Contains(schema.ReadOnlyProperties, "/properties/"+name) {
			list = append(list, name)
		}
	}
	return list
}

func readJSON(t *testing.T, file string, into any) {
	t.Helper()
	text, err := os.ReadFile(file)
	if err == nil {
		err = json.Unmarshal(text, into)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// TestEveryRuleHasAProperty: each rule judges a property of the schemas, but
// for those of the lock table, which NewLockTable makes.
func TestEveryRuleHasAProperty(t *testing.T) {
	t.Parallel()
	bound := map[string]bool{rules.Replication: true, rules.StrongGlobalTable: true}
	for _, of := range schemas {
		for _, c := range of.properties {
			for _, id := range c.rules {
				bound[id] = true
			}
		}
	}
	file, err := parser.ParseFile(token.NewFileSet(), "rules/rules.go", nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	ast.Inspect(file, func(node ast.Node) bool {
		value, ok := node.(*ast.BasicLit)
		if !ok || value.Kind != token.STRING {
			return true
		}
		id, err := strconv.Unquote(value.Value)
		if n++; err != nil || !bound[id] {
			t.Errorf("no property is judged by the rule %s", id)
		}
		return true
	})
	if n < 18 {
		t.Errorf("%d rules", n)
	}
}
