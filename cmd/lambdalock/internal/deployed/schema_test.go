package deployed_test

import (
	"reflect"
	"testing"
	"unicode"

	"github.com/aws/aws-sdk-go-v2/service/lambda"
	"github.com/aws/aws-sdk-go-v2/service/lambda/types"
)

// TestSchema: each field of a mapping, and of the asynchronous invocations, is
// read or is of no concern. One that Lambda adds is neither.
func TestSchema(t *testing.T) {
	t.Parallel()
	const read = "read"
	for of, known := range map[reflect.Type]map[string]string{
		reflect.TypeFor[types.EventSourceMappingConfiguration](): {
			"UUID":                                read,
			"State":                               read,
			"FunctionArn":                         read,
			"EventSourceArn":                      read,
			"Topics":                              read,
			"FunctionResponseTypes":               read,
			"MaximumRetryAttempts":                read,
			"MaximumRecordAgeInSeconds":           read,
			"MaximumBatchingWindowInSeconds":      read,
			"TumblingWindowInSeconds":             read,
			"DestinationConfig":                   read,
			"SelfManagedKafkaEventSourceConfig":   read,
			"AmazonManagedKafkaEventSourceConfig": "the group and the schema do not change what is delivered twice",
			"BatchSize":                           "a batch has the function's timeout, whatever its size",
			"BisectBatchOnFunctionError":          "what was completed is skipped in both halves",
			"DocumentDBEventSourceConfig":         "names the collection",
			"EventSourceMappingArn":               "its name is the UUID",
			"FilterCriteria":                      "what is filtered out reaches no handler",
			"FilterCriteriaError":                 "of the filter",
			"KMSKeyArn":                           "encrypts the filter",
			"LastModified":                        "",
			"LastProcessingResult":                "of one moment",
			"LoggingConfig":                       "of Lambda's own lines",
			"MetricsConfig":                       "counts only",
			"ParallelizationFactor":               "records of a partition key stay in order",
			"ProvisionedPollerConfig":             "how fast, not how often",
			"Queues":                              "a broker's, which is not judged",
			"ScalingConfig":                       "how many at a time, not how often",
			"SelfManagedEventSource":              "a mapping with Topics is Kafka",
			"SourceAccessConfigurations":          "how to connect",
			"StartingPosition":                    "what came before reaches no handler",
			"StartingPositionTimestamp":           "as StartingPosition",
			"StateTransitionReason":               "of the state",
		},
		reflect.TypeFor[lambda.GetFunctionEventInvokeConfigOutput](): {
			"DestinationConfig":        read,
			"MaximumEventAgeInSeconds": read,
			"MaximumRetryAttempts":     read,
			"FunctionArn":              "the one that was asked for",
			"LastModified":             "",
			"ResultMetadata":           "of the request",
		},
	} {
		for i := range of.NumField() {
			name := of.Field(i).Name
			if _, ok := known[name]; !ok && unicode.IsUpper(rune(name[0])) {
				t.Errorf("%s.%s is new: read it and judge it in package rules, or say here why not", of.Name(), name)
			}
			delete(known, name)
		}
		for name := range known {
			t.Errorf("%s.%s does not exist", of.Name(), name)
		}
	}
}
