package deployed_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/kinesis/types"
	"github.com/aws/aws-sdk-go-v2/service/lambda"
	lambdatypes "github.com/aws/aws-sdk-go-v2/service/lambda/types"

	"github.com/lambdalock/lambdalock/cmd/lambdalock/internal/deployed"
	"github.com/lambdalock/lambdalock/infra/rules"
	"github.com/lambdalock/lambdalock/internal/robustness/expect"
)

type (
	esm    = lambdatypes.EventSourceMappingConfiguration
	config = lambda.GetFunctionEventInvokeConfigOutput
)

const (
	consumer = stream + "/consumer/c:1730000000"
	topic    = "arn:aws:kafka:eu-west-1:123456789012:cluster/clicks/0"
	dead     = "arn:aws:sqs:eu-west-1:123456789012:dead"
)

// to is a destination for failures.
func to(arn string) *lambdatypes.DestinationConfig {
	return &lambdatypes.DestinationConfig{OnFailure: &lambdatypes.OnFailure{Destination: &arn}}
}

// deployedFrom is a function that a mapping invokes. Only what change does may
// be wrong.
func deployedFrom(arn string, change func(*cloud, *esm)) *cloud {
	c := &cloud{
		queue: map[string]string{
			"VisibilityTimeout": "60", "MessageRetentionPeriod": "345600", "RedrivePolicy": `{"deadLetterTargetArn":"` + dead + `","maxReceiveCount":5}`,
		},
		others: map[string]map[string]string{"dead": {"MessageRetentionPeriod": "1209600"}},
	}
	m := mapped(arn)
	m.FunctionResponseTypes = []lambdatypes.FunctionResponseType{lambdatypes.FunctionResponseTypeReportBatchItemFailures}
	if !strings.Contains(arn, ":sqs:") {
		m.MaximumRetryAttempts, m.DestinationConfig = aws.Int32(5), to(dead)
	}
	change(c, &m)
	c.mappings = map[string][]esm{"thumbnails": {m}}
	return c
}

// deployedAsync is a function that S3 invokes.
func deployedAsync(change func(*cloud, *config)) *cloud {
	c := deployedFrom(queue, func(*cloud, *esm) {})
	c.policies = map[string]string{"thumbnails": fromS3}
	out := &config{DestinationConfig: to(dead)}
	change(c, out)
	c.configs = map[string]*config{"thumbnails": out}
	return c
}

// deployedAlias is a function with an alias whose second version locks in
// another table, and has that part of the invocations.
func deployedAlias(other string, part float64) *cloud {
	c := deployedFrom(queue, func(*cloud, *esm) {})
	c.alias, c.routing, c.tables = true, map[string]float64{"2": part}, map[string]string{"1": "locks", "2": other}
	return c
}

// found returns the ids of what is wrong, except for the log level of the
// function, and the two days for which its streams keep records.
func found(t *testing.T, c *cloud) (ids []string, f []*deployed.Function) {
	t.Helper()
	f = expect.Value(c.reader().Read(t.Context(), "thumbnails"))(t)
	for _, f := range f {
		f.Settings.LogLevel = ""
		all := f.Settings.Check()
		for i := range f.Mappings {
			all = append(all, f.Mappings[i].Check(f.Settings.Timeout)...)
		}
		for _, finding := range all {
			if finding.ID != rules.Retention {
				ids = append(ids, finding.ID)
			}
		}
		if len(f.Unread) > 0 {
			ids = append(ids, fmt.Sprint("unread: ", f.Unread))
		}
	}
	return ids, f
}

// TestWrongDeployments: each has one thing wrong.
func TestWrongDeployments(t *testing.T) {
	t.Parallel()
	changed := func(attribute, value string) *cloud {
		return deployedFrom(queue, func(c *cloud, _ *esm) { c.queue[attribute] = value })
	}
	for name, c := range map[string]struct {
		cloud *cloud
		want  string
	}{
		"stream, few retries, not kept": {deployedFrom(stream, func(_ *cloud, m *esm) { m.DestinationConfig = nil }), rules.FailureDestination},
		"stream, age, not kept": {deployedFrom(stream, func(_ *cloud, m *esm) {
			m.MaximumRetryAttempts, m.MaximumRecordAgeInSeconds, m.DestinationConfig = aws.Int32(-1), aws.Int32(60), nil
		}), rules.FailureDestination},
		"stream, one retry":                {deployedFrom(stream, func(_ *cloud, m *esm) { m.MaximumRetryAttempts = aws.Int32(1) }), rules.RetryAttempts},
		"stream, destination is gone":      {deployedFrom(stream, func(c *cloud, _ *esm) { delete(c.others, "dead") }), rules.FailureDestination},
		"stream, tumbling window":          {deployedFrom(stream, func(_ *cloud, m *esm) { m.TumblingWindowInSeconds = aws.Int32(30) }), rules.TumblingWindow},
		"stream, AUTO":                     {deployedFrom(stream, func(c *cloud, _ *esm) { c.stream = types.RecordDistributionStrategyAuto }), rules.RecordDistribution},
		"stream, large records":            {deployedFrom(stream, func(c *cloud, _ *esm) { c.records = aws.Int32(10240) }), rules.RecordSize},
		"consumer, no partial answers":     {deployedFrom(consumer, func(_ *cloud, m *esm) { m.FunctionResponseTypes = nil }), rules.PartialAnswer},
		"consumer, no limit":               {deployedFrom(consumer, func(_ *cloud, m *esm) { m.MaximumRetryAttempts = nil }), rules.RetryLimit},
		"consumer, AUTO":                   {deployedFrom(consumer, func(c *cloud, _ *esm) { c.stream = types.RecordDistributionStrategyAuto }), rules.RecordDistribution},
		"queue, dead letters kept as long": {deployedFrom(queue, func(c *cloud, _ *esm) { c.others["dead"]["MessageRetentionPeriod"] = "345600" }), rules.DeadLetterRetention},
		"queue, dead-letter queue is gone": {deployedFrom(queue, func(c *cloud, _ *esm) { delete(c.others, "dead") }), rules.DeadLetterQueue},
		"queue, two receives":              {changed("RedrivePolicy", `{"deadLetterTargetArn":"`+dead+`","maxReceiveCount":2}`), rules.MaxReceiveCount},
		"queue, window above the rest":     {deployedFrom(queue, func(_ *cloud, m *esm) { m.MaximumBatchingWindowInSeconds = aws.Int32(1) }), rules.VisibilityTimeout},
		"S3, age of 60 s":                  {deployedAsync(func(_ *cloud, c *config) { c.MaximumEventAgeInSeconds = aws.Int32(60) }), rules.EventAge},
		"S3, one retry":                    {deployedAsync(func(_ *cloud, c *config) { c.MaximumRetryAttempts = aws.Int32(1) }), rules.RetryAttempts},
		"S3, destination is gone": {deployedAsync(func(_ *cloud, c *config) {
			c.DestinationConfig = to("arn:aws:sqs:eu-west-1:123456789012:gone")
		}), rules.FailureDestination},
		"S3, function as destination is gone": {deployedAsync(func(_ *cloud, c *config) { c.DestinationConfig = to(account + "-gone") }), rules.FailureDestination},
		"two tables":                          {deployedAlias("others", 0.1), rules.AliasTables},
		"topic, no limit":                     {deployedFrom(topic, func(_ *cloud, m *esm) { m.MaximumRetryAttempts, m.DestinationConfig = nil, nil }), rules.RetryLimit},
		"topic, not kept":                     {deployedFrom(topic, func(_ *cloud, m *esm) { m.DestinationConfig = nil }), rules.FailureDestination},
		"topic, no retries":                   {deployedFrom(topic, func(_ *cloud, m *esm) { m.MaximumRetryAttempts = aws.Int32(0) }), rules.RetryAttempts},
		"topic of one's own, queue": {deployedFrom("", func(_ *cloud, m *esm) {
			m.Topics, m.SelfManagedKafkaEventSourceConfig = []string{"orders"}, &lambdatypes.SelfManagedKafkaEventSourceConfig{ConsumptionMode: lambdatypes.KafkaEventSourceMappingConsumptionModeQueue}
		}), rules.ConsumptionMode},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if ids, _ := found(t, c.cloud); !slices.Equal(ids, []string{c.want}) {
				t.Errorf("found %q, want %q", ids, c.want)
			}
		})
	}
}

// TestRightDeployments: nothing is wrong, and what is not looked at is said.
func TestRightDeployments(t *testing.T) {
	t.Parallel()
	nothing := func(*cloud, *esm) {}
	const broker = "arn:aws:mq:eu-west-1:123456789012:broker:orders:b-1"
	for name, c := range map[string]struct {
		cloud  *cloud
		unseen string
	}{
		"queue": {deployedFrom(queue, nothing), ""},
		"queue with window": {deployedFrom(queue, func(c *cloud, m *esm) {
			m.MaximumBatchingWindowInSeconds, c.queue["VisibilityTimeout"] = aws.Int32(5), "65"
		}), ""},
		"stream":                           {deployedFrom(stream, nothing), ""},
		"stream with age":                  {deployedFrom(stream, func(_ *cloud, m *esm) { m.MaximumRetryAttempts, m.MaximumRecordAgeInSeconds = nil, aws.Int32(3600) }), ""},
		"stream, records of 1 MiB":         {deployedFrom(stream, func(c *cloud, _ *esm) { c.records = aws.Int32(1024) }), ""},
		"stream by its keys":               {deployedFrom(stream, func(c *cloud, _ *esm) { c.stream = types.RecordDistributionStrategyUserPartitionKey }), ""},
		"consumer":                         {deployedFrom(consumer, nothing), ""},
		"topic":                            {deployedFrom(topic, func(_ *cloud, m *esm) { m.FunctionResponseTypes = nil }), ""},
		"topic, 10 retries":                {deployedFrom(topic, func(_ *cloud, m *esm) { m.MaximumRetryAttempts = nil }), ""},
		"broker":                           {deployedFrom(broker, func(_ *cloud, m *esm) { *m = mapped(broker) }), "event source mapping 7f1b (broker:orders:b-1)"},
		"kept by a topic":                  {deployedFrom(stream, func(_ *cloud, m *esm) { m.DestinationConfig = to("arn:aws:sns:eu-west-1:123456789012:failed") }), "failure destination arn:aws:sns"},
		"S3":                               {deployedAsync(func(*cloud, *config) {}), ""},
		"S3, kept by a function":           {deployedAsync(func(_ *cloud, c *config) { c.DestinationConfig = to(account + ":live") }), ""},
		"alias, one table":                 {deployedAlias("locks", 0.1), ""},
		"alias, all to the first version":  {deployedAlias("others", 0), ""},
		"alias, all to the second version": {deployedAlias("others", 1), ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ids, f := found(t, c.cloud)
			unseen := strings.Join(f[0].Unseen, "\n")
			if len(ids) > 0 || !strings.HasPrefix(unseen, c.unseen) || c.unseen == "" && unseen != "" {
				t.Errorf("found %q, not looked at is %q", ids, unseen)
			}
		})
	}
}

// TestOfAnotherAccount: what seems to be gone may be there, where this account
// may not look, so nothing is said but that it was not read.
func TestOfAnotherAccount(t *testing.T) {
	t.Parallel()
	const other = ":eu-west-1:999999999999:"
	for name, c := range map[string]*cloud{
		"queue of a stream": deployedFrom(stream, func(_ *cloud, m *esm) { m.DestinationConfig = to("arn:aws:sqs" + other + "gone") }),
		"function":          deployedAsync(func(_ *cloud, c *config) { c.DestinationConfig = to("arn:aws:lambda" + other + "function:gone") }),
		"another Region":    deployedFrom(stream, func(_ *cloud, m *esm) { m.DestinationConfig = to("arn:aws:sqs:us-east-1:123456789012:gone") }),
		"dead-letter queue": deployedFrom(queue, func(c *cloud, _ *esm) {
			c.queue["RedrivePolicy"] = `{"deadLetterTargetArn":"arn:aws:sqs` + other + `gone","maxReceiveCount":5}`
		}),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if ids, _ := found(t, c); len(ids) != 1 || !strings.HasPrefix(ids[0], "unread: ") {
				t.Errorf("found %q", ids)
			}
		})
	}
}

// TestDisabled: what delivers nothing is named, also while it is stopped.
func TestDisabled(t *testing.T) {
	t.Parallel()
	for state, want := range map[string]int{"Enabled": 0, "Enabling": 0, "Disabling": 1, "Disabled": 1} {
		if _, f := found(t, deployedFrom(queue, func(_ *cloud, m *esm) { m.State = aws.String(state) })); len(f[0].Disabled) != want {
			t.Errorf("%s: %q is disabled", state, f[0].Disabled)
		}
	}
}

// TestPolicies: who invokes a function, in all forms of a policy. M22
func TestPolicies(t *testing.T) {
	t.Parallel()
	const allow = `{"Effect":"Allow","Action":"lambda:InvokeFunction","Principal":`
	for policy, want := range map[string]string{
		`{"Statement":[` + allow + `{"Service":"s3.amazonaws.com"}}]}`:                                                                   "s3",
		`{"Statement":[` + allow + `{"Service":["s3.amazonaws.com","sns.amazonaws.com","apigateway.amazonaws.com"]}}]}`:                  "s3 sns",
		`{"Statement":` + allow + `{"Service":["logs.eu-west-1.amazonaws.com"]}}}`:                                                       "logs",
		`{"Statement":[` + allow + `{"AWS":["1","2"],"Service":"s3.amazonaws.com"}}]}`:                                                   "s3",
		`{"Statement":[` + allow + `"*"},` + allow + `{"AWS":"*"}}]}`:                                                                    "",
		`{"Statement":[{"Effect":"Deny","Action":"lambda:InvokeFunction","Principal":{"Service":"s3.amazonaws.com"}}]}`:                  "",
		`{"Statement":[{"Effect":"Allow","Action":["lambda:GetFunction","lambda:Invoke*"],"Principal":{"Service":"s3.amazonaws.com"}}]}`: "s3",
		`{"Statement":[{"Effect":"Allow","Action":"*","Principal":{"Service":"s3.amazonaws.com"}}]}`:                                     "s3",
		`{"Statement":[{"Effect":"Allow","Action":"lambda:GetFunction","Principal":{"Service":"s3.amazonaws.com"}}]}`:                    "",
		`{"Statement":[{"Effect":"Allow","NotAction":"lambda:GetFunction","Principal":{"Service":"s3.amazonaws.com"}}]}`:                 "s3",
		`{"Version":"2012-10-17"}`: "",
		`-`:                        "unread",
		`{"Statement":[{"Principal":{"Service":17}}]}`: "unread",
	} {
		for _, whole := range []bool{false, true} {
			c := &cloud{}
			if c.policies = map[string]string{"thumbnails": policy}; whole {
				c.policies, c.whole = nil, policy
			}
			all := expect.Value(c.reader().Read(t.Context(), "thumbnails"))(t)
			got := ""
			for _, a := range all[0].Settings.Async {
				got = strings.Join(a.Services, " ")
			}
			if len(all[0].Unread) > 0 {
				got = "unread"
			}
			if got != want {
				t.Errorf("%s\ngot %q, want %q", policy, got, want)
			}
		}
	}
}
