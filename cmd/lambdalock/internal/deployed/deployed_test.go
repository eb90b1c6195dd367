package deployed_test

import (
	"context"
	"errors"
	"reflect"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/kinesis"
	kinesistypes "github.com/aws/aws-sdk-go-v2/service/kinesis/types"
	"github.com/aws/aws-sdk-go-v2/service/lambda"
	"github.com/aws/aws-sdk-go-v2/service/lambda/types"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	sqstypes "github.com/aws/aws-sdk-go-v2/service/sqs/types"
	"github.com/aws/smithy-go"

	"github.com/lambdalock/lambdalock/cmd/lambdalock/internal/deployed"
	"github.com/lambdalock/lambdalock/infra/rules"
	"github.com/lambdalock/lambdalock/lock/driver"
)

const (
	account = "arn:aws:lambda:eu-west-1:123456789012:function:thumbnails"
	queue   = "arn:aws:sqs:eu-west-1:123456789012:uploads"
	stream  = "arn:aws:kinesis:eu-west-1:123456789012:stream/clicks"
)

// cloud is an account with the function thumbnails and its alias live. Requests
// whose names are in denied are refused.
type cloud struct {
	policies map[string]string // by the function's name or the alias's ARN
	configs  map[string]*lambda.GetFunctionEventInvokeConfigOutput
	mappings map[string][]types.EventSourceMappingConfiguration
	queue    map[string]string
	others   map[string]map[string]string // queues, by name
	alias    bool
	routing  map[string]float64
	tables   map[string]string // of versions
	whole    string            // resource policy
	stream   kinesistypes.RecordDistributionStrategy
	records  *int32 // how large they may be, in KiB
	reserved *int32 // concurrency
	denied   string
}

func (c *cloud) refusal(operation string) error {
	if c.denied != operation {
		return nil
	}
	return &smithy.GenericAPIError{Code: "AccessDeniedException", Message: "User: somebody is not authorized to perform: service:" + operation + " on resource: it"}
}

func (c *cloud) GetFunctionConfiguration(_ context.Context, in *lambda.GetFunctionConfigurationInput, _ ...func(*lambda.Options)) (*lambda.GetFunctionConfigurationOutput, error) {
	table := "locks"
	if version, ok := c.tables[strings.TrimPrefix(*in.FunctionName, account+":")]; ok {
		table = version
	} else if *in.FunctionName != "thumbnails" && *in.FunctionName != account+":live" && *in.FunctionName != account+":$LATEST" {
		return nil, &types.ResourceNotFoundException{}
	}
	arn := account + strings.TrimPrefix(*in.FunctionName, account)
	if *in.FunctionName == "thumbnails" {
		arn = account
	}
	return &lambda.GetFunctionConfigurationOutput{
		FunctionName: aws.String("thumbnails"), FunctionArn: &arn, Timeout: aws.Int32(10),
		Environment:      &types.EnvironmentResponse{Variables: map[string]string{"LOCK_TABLE_NAME": table, "LOCK_NAMESPACE": "pictures"}},
		DeadLetterConfig: &types.DeadLetterConfig{TargetArn: aws.String(queue)},
		LoggingConfig:    &types.LoggingConfig{ApplicationLogLevel: types.ApplicationLogLevelFatal},
	}, c.refusal("GetFunctionConfiguration")
}

func (c *cloud) ListAliases(context.Context, *lambda.ListAliasesInput, ...func(*lambda.Options)) (*lambda.ListAliasesOutput, error) {
	out := &lambda.ListAliasesOutput{}
	if c.alias {
		out.Aliases = []types.AliasConfiguration{{Name: aws.String("live"), AliasArn: aws.String(account + ":live"), FunctionVersion: aws.String("1"), RoutingConfig: &types.AliasRoutingConfiguration{AdditionalVersionWeights: c.routing}}}
	}
	return out, c.refusal("ListAliases")
}

func (c *cloud) ListEventSourceMappings(_ context.Context, in *lambda.ListEventSourceMappingsInput, _ ...func(*lambda.Options)) (*lambda.ListEventSourceMappingsOutput, error) {
	return &lambda.ListEventSourceMappingsOutput{EventSourceMappings: c.mappings[*in.FunctionName]}, c.refusal("ListEventSourceMappings")
}

func (c *cloud) GetFunctionConcurrency(_ context.Context, in *lambda.GetFunctionConcurrencyInput, _ ...func(*lambda.Options)) (*lambda.GetFunctionConcurrencyOutput, error) {
	if *in.FunctionName != "thumbnails" && *in.FunctionName != account {
		return nil, errors.New("a function without a qualifier is wanted")
	}
	return &lambda.GetFunctionConcurrencyOutput{ReservedConcurrentExecutions: c.reserved}, c.refusal("GetFunctionConcurrency")
}

func (c *cloud) GetPolicy(_ context.Context, in *lambda.GetPolicyInput, _ ...func(*lambda.Options)) (*lambda.GetPolicyOutput, error) {
	if policy, ok := c.policies[*in.FunctionName]; ok {
		return &lambda.GetPolicyOutput{Policy: &policy}, c.refusal("GetPolicy")
	}
	return nil, &types.ResourceNotFoundException{}
}

func (c *cloud) GetFunctionEventInvokeConfig(_ context.Context, in *lambda.GetFunctionEventInvokeConfigInput, _ ...func(*lambda.Options)) (*lambda.GetFunctionEventInvokeConfigOutput, error) {
	if out, ok := c.configs[*in.FunctionName]; ok {
		return out, c.refusal("GetFunctionEventInvokeConfig")
	}
	return nil, &types.ResourceNotFoundException{}
}

func (c *cloud) GetQueueUrl(_ context.Context, in *sqs.GetQueueUrlInput, _ ...func(*sqs.Options)) (*sqs.GetQueueUrlOutput, error) { //nolint:staticcheck // the SDK's name
	if _, ok := c.others[*in.QueueName]; !ok && *in.QueueName != "uploads" || aws.ToString(in.QueueOwnerAWSAccountId) != "123456789012" {
		return nil, &sqstypes.QueueDoesNotExist{}
	}
	return &sqs.GetQueueUrlOutput{QueueUrl: aws.String("https://sqs/" + *in.QueueName)}, c.refusal("GetQueueUrl")
}

func (c *cloud) GetQueueAttributes(_ context.Context, in *sqs.GetQueueAttributesInput, _ ...func(*sqs.Options)) (*sqs.GetQueueAttributesOutput, error) {
	if other, ok := c.others[strings.TrimPrefix(*in.QueueUrl, "https://sqs/")]; ok {
		return &sqs.GetQueueAttributesOutput{Attributes: other}, c.refusal("GetQueueAttributes")
	}
	return &sqs.GetQueueAttributesOutput{Attributes: c.queue}, c.refusal("GetQueueAttributes")
}

// GetResourcePolicy has a policy that GetPolicy does not return.
func (c *cloud) GetResourcePolicy(context.Context, *lambda.GetResourcePolicyInput, ...func(*lambda.Options)) (*lambda.GetResourcePolicyOutput, error) {
	if c.whole == "" && c.denied != "GetResourcePolicy" {
		return nil, &types.ResourceNotFoundException{}
	}
	return &lambda.GetResourcePolicyOutput{Policy: &c.whole}, c.refusal("GetResourcePolicy")
}

func (c *cloud) DescribeStreamSummary(_ context.Context, in *kinesis.DescribeStreamSummaryInput, _ ...func(*kinesis.Options)) (*kinesis.DescribeStreamSummaryOutput, error) {
	if *in.StreamARN != stream {
		return nil, &kinesistypes.InvalidArgumentException{}
	}
	return &kinesis.DescribeStreamSummaryOutput{StreamDescriptionSummary: &kinesistypes.StreamDescriptionSummary{RetentionPeriodHours: aws.Int32(48), RecordDistributionStrategy: c.stream, MaxRecordSizeInKiB: c.records}}, c.refusal("DescribeStreamSummary")
}

func (c *cloud) reader() *deployed.Reader { return &deployed.Reader{Lambda: c, SQS: c, Kinesis: c} }

// mapped is a mapping from a source.
func mapped(arn string) types.EventSourceMappingConfiguration {
	return types.EventSourceMappingConfiguration{UUID: aws.String("7f1b"), EventSourceArn: &arn, State: aws.String("Enabled")}
}

const (
	fromS3     = `{"Statement":[{"Principal":{"Service":"s3.amazonaws.com"}},{"Principal":{"Service":"s3.amazonaws.com"}},{"Principal":{"Service":"apigateway.amazonaws.com"}}]}`
	fromPeople = `{"Statement":[{"Principal":"*"},{"Principal":{"AWS":"arn:aws:iam::123456789012:root"}}]}`
)

// TestRead reads one setting after another.
func TestRead(t *testing.T) {
	t.Parallel()
	never := aws.Int32(0)
	kept := &types.DestinationConfig{OnFailure: &types.OnFailure{Destination: aws.String(queue)}}
	noLimit := rules.Known(rules.Unlimited)
	for name, c := range map[string]struct {
		cloud   cloud
		async   []rules.Async
		mapping *rules.Mapping
	}{
		"nothing invokes it":     {},
		"people may":             {cloud: cloud{policies: map[string]string{"thumbnails": fromPeople}}},
		"S3":                     {cloud: cloud{policies: map[string]string{"thumbnails": fromS3}}, async: []rules.Async{{Services: []string{"s3"}}}},
		"S3, nothing is kept":    {cloud: cloud{policies: map[string]string{"thumbnails": fromS3}, configs: map[string]*lambda.GetFunctionEventInvokeConfigOutput{"thumbnails": {MaximumRetryAttempts: never}}}, async: []rules.Async{{Services: []string{"s3"}, Retries: rules.Known(0)}}},
		"S3, successes are kept": {cloud: cloud{policies: map[string]string{"thumbnails": fromS3}, configs: map[string]*lambda.GetFunctionEventInvokeConfigOutput{"thumbnails": {DestinationConfig: &types.DestinationConfig{OnSuccess: &types.OnSuccess{Destination: aws.String(queue)}, OnFailure: &types.OnFailure{}}}}}, async: []rules.Async{{Services: []string{"s3"}}}},
		"S3, kept":               {cloud: cloud{policies: map[string]string{"thumbnails": fromS3}, configs: map[string]*lambda.GetFunctionEventInvokeConfigOutput{"thumbnails": {DestinationConfig: kept}}}, async: []rules.Async{{Services: []string{"s3"}, HasFailureDestination: true}}},
		"queue": {
			cloud:   cloud{mappings: map[string][]types.EventSourceMappingConfiguration{"thumbnails": {mapped(queue)}}, queue: map[string]string{"VisibilityTimeout": "30", "MessageRetentionPeriod": "345600", "RedrivePolicy": `{"maxReceiveCount":"3"}`}},
			mapping: &rules.Mapping{Name: "7f1b", Kind: rules.SQS, Source: "uploads", Queue: &rules.Queue{VisibilityTimeout: rules.Known(30), HasRedrivePolicy: true, MaxReceiveCount: rules.Known(3)}, Retention: rules.Known(345600), Retries: noLimit, RecordAge: noLimit},
		},
		"queue without a dead-letter queue": {
			cloud:   cloud{mappings: map[string][]types.EventSourceMappingConfiguration{"thumbnails": {mapped(queue)}}},
			mapping: &rules.Mapping{Name: "7f1b", Kind: rules.SQS, Source: "uploads", Queue: &rules.Queue{}, Retries: noLimit, RecordAge: noLimit},
		},
		"stream": {
			cloud:   cloud{mappings: map[string][]types.EventSourceMappingConfiguration{"thumbnails": {mapped(stream)}}},
			mapping: &rules.Mapping{Name: "7f1b", Kind: rules.Kinesis, Source: "stream/clicks", Retention: rules.Known(48 * 60 * 60), Retries: noLimit, RecordAge: noLimit},
		},
		"Kafka": {
			cloud:   cloud{mappings: map[string][]types.EventSourceMappingConfiguration{"thumbnails": {mapped("arn:aws:kafka:eu-west-1:123456789012:cluster/clicks")}}},
			mapping: &rules.Mapping{Name: "7f1b", Kind: rules.Kafka, Source: "cluster/clicks", Retries: noLimit, RecordAge: noLimit},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			all, err := c.cloud.reader().Read(t.Context(), "thumbnails")
			if err != nil || len(all) != 1 {
				t.Fatalf("%d functions, %v", len(all), err)
			}
			f := all[0]
			want := rules.Function{Timeout: rules.Known(10), HasDeadLetterQueue: true, LogLevel: "FATAL", Async: c.async}
			if !reflect.DeepEqual(f.Settings, want) || f.Name != "thumbnails" || f.Table != "locks" || f.Namespace != "pictures" || len(f.Unread) != 0 {
				t.Errorf("read %+v, want %+v", f, want)
			}
			if c.mapping == nil && len(f.Mappings) > 0 || c.mapping != nil && !reflect.DeepEqual(f.Mappings, []rules.Mapping{*c.mapping}) {
				t.Errorf("the mappings are %+v, want %+v", f.Mappings, c.mapping)
			}
		})
	}
}

// TestReadConcurrency: a function is stopped as a whole, and only by 0.
func TestReadConcurrency(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"thumbnails", account + ":live", account + ":$LATEST"} {
		for reserved, want := range map[*int32]bool{nil: false, aws.Int32(0): true, aws.Int32(5): false} {
			c := cloud{alias: true, reserved: reserved}
			all, err := c.reader().Read(t.Context(), name)
			if err != nil || all[0].Stopped != want || len(all[0].Unread) > 0 || len(all) > 1 && all[1].Stopped {
				t.Errorf("%s with %v: %+v, %v", name, reserved, all, err)
			}
		}
	}
}

// TestReadAliases: each alias has its own sources and settings.
func TestReadAliases(t *testing.T) {
	t.Parallel()
	of := mapped(queue)
	of.FunctionArn = aws.String(account + ":live")
	c := cloud{
		alias: true, policies: map[string]string{account + ":live": fromS3},
		mappings: map[string][]types.EventSourceMappingConfiguration{"thumbnails": {of}, account + ":live": {of}},
	}
	all, err := c.reader().Read(t.Context(), "thumbnails")
	if err != nil || len(all) != 2 || all[1].Name != "thumbnails:live" {
		t.Fatalf("%+v, %v", all, err)
	}
	if len(all[0].Settings.Async)+len(all[0].Mappings) != 0 || len(all[1].Settings.Async) != 1 || len(all[1].Mappings) != 1 {
		t.Errorf("the function has %+v, the alias %+v", all[0], all[1])
	}
	of.FunctionArn = aws.String(account)
	c.mappings[account+":$LATEST"] = []types.EventSourceMappingConfiguration{of}
	if latest, err := c.reader().Read(t.Context(), account+":$LATEST"); err != nil || len(latest) != 1 || len(latest[0].Mappings) != 1 {
		t.Errorf("$LATEST: %+v, %v", latest, err)
	}
	all, err = c.reader().Read(t.Context(), account+":live")
	if err != nil || len(all) != 1 || all[0].Name != "thumbnails:live" || all[0].DefaultNamespace() != "pictures" {
		t.Errorf("the alias alone: %+v, %v", all, err)
	}
}

// TestReadIsDenied: what may not be read is named, and the rest is read.
func TestReadIsDenied(t *testing.T) {
	t.Parallel()
	for _, operation := range []string{"ListAliases", "ListEventSourceMappings", "GetPolicy", "GetResourcePolicy", "GetFunctionConcurrency", "GetFunctionEventInvokeConfig", "GetQueueUrl", "GetQueueAttributes", "DescribeStreamSummary"} {
		t.Run(operation, func(t *testing.T) {
			t.Parallel()
			c := cloud{
				denied: operation, policies: map[string]string{"thumbnails": fromS3}, queue: map[string]string{},
				configs:  map[string]*lambda.GetFunctionEventInvokeConfigOutput{"thumbnails": {}},
				mappings: map[string][]types.EventSourceMappingConfiguration{"thumbnails": {mapped(queue), mapped(stream)}},
			}
			if operation == "GetResourcePolicy" { // which is asked for only if there is no other
				c.policies = nil
			}
			all, err := c.reader().Read(t.Context(), "thumbnails")
			if err != nil || len(all) != 1 || len(all[0].Unread) == 0 {
				t.Fatalf("%+v, %v", all, err)
			}
			var e *driver.Error
			if !errors.As(all[0].Unread[0], &e) || e.Action != "service:"+operation {
				t.Errorf("%v", all[0].Unread[0])
			}
		})
	}
	c := cloud{denied: "GetFunctionConfiguration"}
	if _, err := c.reader().Read(t.Context(), "thumbnails"); err == nil || !strings.Contains(err.Error(), "GetFunctionConfiguration was denied") {
		t.Errorf("the function itself: %v", err)
	}
	if _, err := c.reader().Read(t.Context(), "other"); !errors.As(err, new(*driver.ConfigError)) {
		t.Errorf("no such function: %v", err)
	}
}

func TestRegion(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]string{"thumbnails": "", "thumbnails:live": "", account: "eu-west-1", account + ":live": "eu-west-1", "arn:": ""} {
		if got := deployed.Region(name); got != want {
			t.Errorf("%s: %q, want %q", name, got, want)
		}
	}
}

// TestDefaultNamespace: an alias locks in the namespace of its function.
func TestDefaultNamespace(t *testing.T) {
	t.Parallel()
	f := deployed.Function{Namespace: "pictures"}
	if got := f.DefaultNamespace(); got != "pictures" {
		t.Error(got)
	}
}
