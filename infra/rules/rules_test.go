package rules_test

import (
	"slices"
	"testing"

	"github.com/lambdalock/lambdalock/infra/rules"
)

// ids fails unless the findings have exactly these ids, in this order, and each
// says what to do.
func ids(t *testing.T, got []rules.Finding, want ...string) {
	t.Helper()
	var found []string
	for _, f := range got {
		found = append(found, f.ID)
		if len(f.Text) < 40 {
			t.Errorf("%s: the text is %q", f.ID, f.Text)
		}
	}
	if !slices.Equal(found, want) {
		t.Errorf("found %q, want %q", found, want)
	}
}

var known = rules.Known

const day = 24 * 60 * 60

// TestMapping: each case changes one setting of a mapping that is right, for a
// function with a timeout of 10 s.
func TestMapping(t *testing.T) {
	t.Parallel()
	type change = func(*rules.Mapping)
	cases := []struct {
		name   string
		kind   string
		change change
		want   []string
	}{
		{"queue", rules.SQS, func(*rules.Mapping) {}, nil},
		{"visibility of 59 s", rules.SQS, func(m *rules.Mapping) { m.Queue.VisibilityTimeout = known(59) }, []string{rules.VisibilityTimeout}},
		{"visibility of 60 s", rules.SQS, func(m *rules.Mapping) { m.Queue.VisibilityTimeout = known(60) }, nil},
		{"unknown visibility", rules.SQS, func(m *rules.Mapping) { m.Queue.VisibilityTimeout = rules.Number{} }, nil},
		{"no dead-letter queue", rules.SQS, func(m *rules.Mapping) { m.Queue.HasRedrivePolicy = false }, []string{rules.DeadLetterQueue}},
		{"1 receive", rules.SQS, func(m *rules.Mapping) { m.Queue.MaxReceiveCount = known(1) }, []string{rules.MaxReceiveCount}},
		{"2 receives", rules.SQS, func(m *rules.Mapping) { m.Queue.MaxReceiveCount = known(2) }, nil},
		{"unknown receives", rules.SQS, func(m *rules.Mapping) { m.Queue.MaxReceiveCount = rules.Number{} }, nil},
		{"unknown queue", rules.SQS, func(m *rules.Mapping) { m.Queue = nil }, nil},
		{"kept 4 days", rules.SQS, func(m *rules.Mapping) { m.Retention = known(4 * day) }, nil},
		{"kept longer", rules.SQS, func(m *rules.Mapping) { m.Retention = known(4*day + 1) }, []string{rules.Retention}},
		{"kept unknown", rules.SQS, func(m *rules.Mapping) { m.Retention = rules.Number{} }, nil},
		{"no partial answers", rules.SQS, func(m *rules.Mapping) { m.ReportsFailures = false }, []string{rules.PartialAnswer}},
		{"queue without a limit", rules.SQS, func(m *rules.Mapping) { m.Retries = known(rules.Unlimited) }, nil},
		{"all of a queue", rules.SQS, func(m *rules.Mapping) {
			*m = rules.Mapping{Kind: m.Kind, Queue: &rules.Queue{VisibilityTimeout: known(1), MaxReceiveCount: known(1)}, Retention: known(14 * day)}
		}, []string{rules.VisibilityTimeout, rules.DeadLetterQueue, rules.Retention, rules.PartialAnswer}},

		{"stream", rules.Kinesis, func(*rules.Mapping) {}, nil},
		{"stream kept longer", rules.Kinesis, func(m *rules.Mapping) { m.Retention = known(day + 1) }, []string{rules.Retention}},
		{"no retries", rules.Kinesis, func(m *rules.Mapping) { m.Retries = known(0) }, []string{rules.RetryAttempts}},
		{"no limit", rules.Kinesis, func(m *rules.Mapping) { m.Retries = known(rules.Unlimited) }, []string{rules.RetryLimit}},
		{"limited by age", rules.Kinesis, func(m *rules.Mapping) { m.Retries, m.RecordAge = known(rules.Unlimited), known(3600) }, nil},
		{"unknown limit", rules.Kinesis, func(m *rules.Mapping) { m.Retries = rules.Number{} }, nil},
		{"no partial answers of a stream", rules.Kinesis, func(m *rules.Mapping) { m.ReportsFailures = false }, []string{rules.PartialAnswer}},

		{"table", rules.DynamoDBStream, func(*rules.Mapping) {}, nil},
		{"table without limit", rules.DynamoDBStream, func(m *rules.Mapping) { m.Retries = known(rules.Unlimited) }, []string{rules.RetryLimit}},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			m := rules.Mapping{Name: "mapping", Kind: c.kind, Source: "source", ReportsFailures: true, Retries: known(5), RecordAge: known(rules.Unlimited)}
			if c.kind == rules.SQS {
				m.Queue = &rules.Queue{VisibilityTimeout: known(60), HasRedrivePolicy: true, MaxReceiveCount: known(5)}
			}
			c.change(&m)
			ids(t, m.Check(known(10)), c.want...)
		})
	}
	t.Run("unknown timeout", func(t *testing.T) {
		t.Parallel()
		m := rules.Mapping{Kind: rules.SQS, Queue: &rules.Queue{VisibilityTimeout: known(0), HasRedrivePolicy: true}, ReportsFailures: true}
		ids(t, m.Check(rules.Number{}))
	})
}

func TestFunction(t *testing.T) {
	t.Parallel()
	async := func(a rules.Async) []rules.Async { return []rules.Async{a} }
	kept := rules.Async{Services: []string{"s3"}, HasFailureDestination: true, Retries: known(2)}
	for name, c := range map[string]struct {
		function rules.Function
		want     []string
	}{
		"not asynchronous":        {rules.Function{Timeout: known(900)}, nil},
		"kept":                    {rules.Function{Timeout: known(178), Async: async(kept)}, nil},
		"too long":                {rules.Function{Timeout: known(179), Async: async(kept)}, []string{rules.AsyncTimeout}},
		"too long, twice invoked": {rules.Function{Timeout: known(900), Async: []rules.Async{kept, kept}}, []string{rules.AsyncTimeout}},
		"unknown timeout":         {rules.Function{Async: async(kept)}, nil},
		"nothing keeps it":        {rules.Function{Async: async(rules.Async{Services: []string{"s3"}})}, []string{rules.FailureDestination}},
		"dead-letter queue":       {rules.Function{HasDeadLetterQueue: true, Async: async(rules.Async{Services: []string{"s3"}})}, nil},
		"no retries":              {rules.Function{HasDeadLetterQueue: true, Async: async(rules.Async{Retries: known(0)})}, []string{rules.RetryAttempts}},
		"each alias":              {rules.Function{Async: []rules.Async{kept, {Qualifier: "live"}}}, []string{rules.FailureDestination}},
		"level FATAL":             {rules.Function{LogLevel: "FATAL"}, []string{rules.LogLevel}},
		"level ERROR":             {rules.Function{LogLevel: "ERROR"}, nil},
		"level ERROR, counted":    {rules.Function{LogLevel: "ERROR", LinesAreCounted: true}, []string{rules.LogLevel}},
		"level WARN, counted":     {rules.Function{LogLevel: "WARN", LinesAreCounted: true}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ids(t, c.function.Check(), c.want...)
		})
	}
}

func TestReplica(t *testing.T) {
	t.Parallel()
	for strong, want := range map[bool]string{false: rules.Replication, true: rules.StrongGlobalTable} {
		r := rules.Replica{Name: "replica", Strong: strong}
		f := r.Check()
		ids(t, []rules.Finding{f}, want)
		if f.Fatal == strong {
			t.Errorf("strong %v: fatal is %v", strong, f.Fatal)
		}
	}
}

func TestAsyncService(t *testing.T) {
	t.Parallel()
	for principal, want := range map[string]string{
		"s3.amazonaws.com": "s3", "logs.eu-west-1.amazonaws.com": "logs", "lambda.alarms.cloudwatch.amazonaws.com": "lambda.alarms.cloudwatch",
		"apigateway.amazonaws.com": "", "lambda.amazonaws.com": "", "iotevents.amazonaws.com": "", "events": "", "": "",
	} {
		if got := rules.AsyncService(principal); got != want {
			t.Errorf("%q is %q, want %q", principal, got, want)
		}
	}
}

func TestKindOf(t *testing.T) {
	t.Parallel()
	for arn, want := range map[string]string{
		"arn:aws:sqs:eu-west-1:111111111111:orders":                           rules.SQS,
		"arn:aws:kinesis:eu-west-1:111111111111:stream/orders":                rules.Kinesis,
		"arn:aws:dynamodb:eu-west-1:111111111111:table/orders/stream/2026":    rules.DynamoDBStream,
		"arn:aws:kafka:eu-west-1:111111111111:cluster/orders/0":               "",
		`{"Fn::Join":["",["arn:",{"Ref":"P"},":sqs:eu-west-1:1111:orders"]]}`: rules.SQS,
		"": "",
	} {
		if got := rules.KindOf(arn); got != want {
			t.Errorf("%q is %q, want %q", arn, got, want)
		}
	}
}
