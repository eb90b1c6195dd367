package deployed_test

import (
	"maps"
	"reflect"
	"testing"
	"unicode"

	kinesistypes "github.com/aws/aws-sdk-go-v2/service/kinesis/types"
	"github.com/aws/aws-sdk-go-v2/service/lambda"
	"github.com/aws/aws-sdk-go-v2/service/lambda/types"
)

const read = "read"

// fields are those of what is asked for: read, or why not. Why a setting is of
// no concern to the rules is in the test of the schema in infra.
var fields = map[reflect.Type]map[string]string{
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
	reflect.TypeFor[lambda.GetFunctionConfigurationOutput](): {
		"FunctionName":               read,
		"FunctionArn":                read,
		"Environment":                read,
		"Timeout":                    read,
		"DeadLetterConfig":           read,
		"LoggingConfig":              read,
		"Architectures":              "see infra",
		"CapacityProviderConfig":     "see infra",
		"CodeSha256":                 "of the code",
		"CodeSize":                   "of the code",
		"ConfigSha256":               "",
		"Description":                "",
		"DurableConfig":              "see infra",
		"EphemeralStorage":           "see infra",
		"FileSystemConfigs":          "see infra",
		"Handler":                    "of the code",
		"ImageConfigResponse":        "of the code",
		"KMSKeyArn":                  "see infra",
		"LastModified":               "",
		"LastUpdateStatus":           "of one moment",
		"LastUpdateStatusReason":     "of one moment",
		"LastUpdateStatusReasonCode": "of one moment",
		"Layers":                     "of the code",
		"MasterArn":                  "of Lambda@Edge, which has no variables",
		"MemorySize":                 "see infra",
		"PackageType":                "of the code",
		"ResultMetadata":             "of the request",
		"RevisionId":                 "",
		"Role":                       "who asks may not see its policies",
		"Runtime":                    "of the code",
		"RuntimeVersionConfig":       "of the code",
		"SigningJobArn":              "of the code",
		"SigningProfileVersionArn":   "of the code",
		"SnapStart":                  "see infra",
		"State":                      "of one moment",
		"StateReason":                "of one moment",
		"StateReasonCode":            "of one moment",
		"TenancyConfig":              "see infra",
		"TracingConfig":              "see infra",
		"Version":                    "in the ARN, if one asked for it",
		"VpcConfig":                  "see infra",
	},
	reflect.TypeFor[types.AliasConfiguration](): {
		"AliasArn":        read,
		"Name":            read,
		"FunctionVersion": read,
		"RoutingConfig":   read,
		"Description":     "",
		"RevisionId":      "",
	},
	reflect.TypeFor[kinesistypes.StreamDescriptionSummary](): {
		"RetentionPeriodHours":       read,
		"RecordDistributionStrategy": read,
		"ChannelCount":               "how many read it",
		"ConsumerCount":              "how many read it",
		"EncryptionType":             "encrypts",
		"EnhancedMonitoring":         "counts only",
		"KeyId":                      "encrypts",
		"MaxRecordSizeInKiB":         read,
		"OpenShardCount":             "see infra",
		"StreamARN":                  "the one that was asked for",
		"StreamCreationTimestamp":    "",
		"StreamId":                   "the one that was asked for",
		"StreamModeDetails":          "see infra",
		"StreamName":                 "the one that was asked for",
		"StreamStatus":               "of one moment",
		"WarmThroughput":             "see infra",
	},
}

// TestSchema: each field is read or is of no concern. One that AWS adds is
// neither.
func TestSchema(t *testing.T) {
	t.Parallel()
	for of, known := range fields {
		known := maps.Clone(known)
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
