package infra_test

import (
	"reflect"
	"testing"

	"github.com/aws/aws-cdk-go/awscdk/v2/awslambda"
)

// TestSchema: each property of a mapping, and of the asynchronous invocations,
// is judged or is of no concern. One that CloudFormation adds is neither.
func TestSchema(t *testing.T) {
	t.Parallel()
	const judged = "judged"
	for of, known := range map[reflect.Type]map[string]string{
		reflect.TypeFor[awslambda.CfnEventSourceMappingProps](): {
			"FunctionName":                        judged,
			"EventSourceArn":                      judged,
			"Topics":                              judged,
			"FunctionResponseTypes":               judged,
			"MaximumRetryAttempts":                judged,
			"MaximumRecordAgeInSeconds":           judged,
			"MaximumBatchingWindowInSeconds":      judged,
			"TumblingWindowInSeconds":             judged,
			"DestinationConfig":                   judged,
			"SelfManagedKafkaEventSourceConfig":   judged,
			"AmazonManagedKafkaEventSourceConfig": "the group and the schema do not change what is delivered twice",
			"BatchSize":                           "a batch has the function's timeout, whatever its size",
			"BisectBatchOnFunctionError":          "what was completed is skipped in both halves",
			"DocumentDbEventSourceConfig":         "names the collection",
			"Enabled":                             "the owner disables it on purpose; doctor names it",
			"FilterCriteria":                      "what is filtered out reaches no handler",
			"KmsKeyArn":                           "encrypts the filter",
			"MetricsConfig":                       "counts only",
			"ParallelizationFactor":               "records of a partition key stay in order",
			"ProvisionedPollerConfig":             "how fast, not how often",
			"Queues":                              "a broker's, which is not judged",
			"ScalingConfig":                       "how many at a time, not how often",
			"SelfManagedEventSource":              "a mapping with Topics is Kafka",
			"SourceAccessConfigurations":          "how to connect",
			"StartingPosition":                    "what came before reaches no handler",
			"StartingPositionTimestamp":           "as StartingPosition",
			"Tags":                                "",
		},
		reflect.TypeFor[awslambda.CfnEventInvokeConfigProps](): {
			"FunctionName":             judged,
			"Qualifier":                judged,
			"DestinationConfig":        judged,
			"MaximumEventAgeInSeconds": judged,
			"MaximumRetryAttempts":     judged,
		},
	} {
		for i := range of.NumField() {
			if name := of.Field(i).Name; !has(known, name) {
				t.Errorf("%s.%s is new: judge it in package rules, or say here why not", of.Name(), name)
			}
			delete(known, of.Field(i).Name)
		}
		for name := range known {
			t.Errorf("%s.%s does not exist", of.Name(), name)
		}
	}
}

func has(known map[string]string, name string) bool { _, ok := known[name]; return ok }
