package rules_test

import (
	"slices"
	"strings"
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
		{"2 receives", rules.SQS, func(m *rules.Mapping) { m.Queue.MaxReceiveCount = known(2) }, []string{rules.MaxReceiveCount}},
		{"3 receives", rules.SQS, func(m *rules.Mapping) { m.Queue.MaxReceiveCount = known(3) }, nil},
		{"window of 1 s", rules.SQS, func(m *rules.Mapping) { m.BatchingWindow = known(1) }, []string{rules.VisibilityTimeout}},
		{"window that fits", rules.SQS, func(m *rules.Mapping) { m.BatchingWindow, m.Queue.VisibilityTimeout = known(300), known(360) }, nil},
		{"unknown window", rules.SQS, func(m *rules.Mapping) { m.BatchingWindow = rules.Number{} }, nil},
		{"kept as long", rules.SQS, func(m *rules.Mapping) { m.Retention = known(4 * day); m.Queue.DeadLetterRetention = known(4 * day) }, []string{rules.DeadLetterRetention}},
		{"kept longer when dead", rules.SQS, func(m *rules.Mapping) { m.Retention = known(4 * day); m.Queue.DeadLetterRetention = known(14 * day) }, nil},
		{"kept as long, FIFO", rules.SQS, func(m *rules.Mapping) {
			m.Retention, m.Queue.DeadLetterRetention, m.Queue.FIFO = known(4*day), known(4*day), true
		}, nil},
		{"dead-letter queue is gone", rules.SQS, func(m *rules.Mapping) { m.Queue.GoneDeadLetterQueue = "dead" }, []string{rules.DeadLetterQueue}},
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
		{"limited by age, not kept", rules.Kinesis, func(m *rules.Mapping) {
			m.Retries, m.RecordAge, m.HasFailureDestination = known(rules.Unlimited), known(3600), false
		}, []string{rules.FailureDestination}},
		{"1 retry", rules.Kinesis, func(m *rules.Mapping) { m.Retries = known(1) }, []string{rules.RetryAttempts}},
		{"2 retries", rules.Kinesis, func(m *rules.Mapping) { m.Retries = known(2) }, nil},
		{"not kept", rules.Kinesis, func(m *rules.Mapping) { m.HasFailureDestination = false }, []string{rules.FailureDestination}},
		{"no limit, not kept", rules.Kinesis, func(m *rules.Mapping) { m.Retries, m.HasFailureDestination = known(rules.Unlimited), false }, []string{rules.RetryLimit}},
		{"unknown limit, not kept", rules.Kinesis, func(m *rules.Mapping) { m.Retries, m.HasFailureDestination = rules.Number{}, false }, nil},
		{"destination is gone", rules.Kinesis, func(m *rules.Mapping) { m.GoneDestination = "dead" }, []string{rules.FailureDestination}},
		{"tumbling window", rules.Kinesis, func(m *rules.Mapping) { m.TumblingWindow = known(30) }, []string{rules.TumblingWindow}},
		{"no tumbling window", rules.Kinesis, func(m *rules.Mapping) { m.TumblingWindow = known(0) }, nil},
		{"large records", rules.Kinesis, func(m *rules.Mapping) { m.RecordSize = rules.Known(10 * 1024) }, []string{rules.RecordSize}},
		{"records that fit", rules.Kinesis, func(m *rules.Mapping) { m.RecordSize = rules.Known(4608) }, nil},
		{"AUTO", rules.Kinesis, func(m *rules.Mapping) { m.DistributesByItself = true }, []string{rules.RecordDistribution}},
		{"unknown limit", rules.Kinesis, func(m *rules.Mapping) { m.Retries = rules.Number{} }, nil},
		{"no partial answers of a stream", rules.Kinesis, func(m *rules.Mapping) { m.ReportsFailures = false }, []string{rules.PartialAnswer}},

		{"table", rules.DynamoDBStream, func(*rules.Mapping) {}, nil},
		{"table, tumbling window", rules.DynamoDBStream, func(m *rules.Mapping) { m.TumblingWindow = known(900) }, []string{rules.TumblingWindow}},

		{"topic", rules.Kafka, func(*rules.Mapping) {}, nil},
		{"topic without partial answers", rules.Kafka, func(m *rules.Mapping) { m.ReportsFailures = false }, nil},
		{"topic without limit", rules.Kafka, func(m *rules.Mapping) { m.Retries, m.HasFailureDestination = known(rules.Unlimited), false }, []string{rules.RetryLimit}},
		{"topic, 10 retries by default", rules.Kafka, func(m *rules.Mapping) { m.Retries = known(rules.Unlimited) }, nil},
		{"topic not kept", rules.Kafka, func(m *rules.Mapping) { m.HasFailureDestination = false }, []string{rules.FailureDestination}},
		{"topic, 1 retry", rules.Kafka, func(m *rules.Mapping) { m.Retries = known(1) }, []string{rules.RetryAttempts}},
		{"topic as a queue", rules.Kafka, func(m *rules.Mapping) { m.SharesGroup = true }, []string{rules.ConsumptionMode}},
		{"topic as a queue, defaults", rules.Kafka, func(m *rules.Mapping) { m.SharesGroup, m.Retries = true, known(rules.Unlimited) }, []string{rules.ConsumptionMode, rules.RetryAttempts}},
		{"topic as a queue, not kept", rules.Kafka, func(m *rules.Mapping) {
			m.SharesGroup, m.Retries, m.HasFailureDestination = true, known(rules.Unlimited), false
		}, []string{rules.ConsumptionMode, rules.FailureDestination}},
		{"table without limit", rules.DynamoDBStream, func(m *rules.Mapping) { m.Retries = known(rules.Unlimited) }, []string{rules.RetryLimit}},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			m := rules.Mapping{Name: "mapping", Kind: c.kind, Source: "source", ReportsFailures: true, Retries: known(5), RecordAge: known(rules.Unlimited), HasFailureDestination: true}
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
		"kept":                    {rules.Function{Timeout: known(172), Async: async(kept)}, nil},
		"too long":                {rules.Function{Timeout: known(173), Async: async(kept)}, []string{rules.AsyncTimeout}},
		"too long, twice invoked": {rules.Function{Timeout: known(900), Async: []rules.Async{kept, kept}}, []string{rules.AsyncTimeout}},
		"unknown timeout":         {rules.Function{Async: async(kept)}, nil},
		"nothing keeps it":        {rules.Function{Async: async(rules.Async{Services: []string{"s3"}})}, []string{rules.FailureDestination}},
		"dead-letter queue":       {rules.Function{HasDeadLetterQueue: true, Async: async(rules.Async{Services: []string{"s3"}})}, nil},
		"no retries":              {rules.Function{HasDeadLetterQueue: true, Async: async(rules.Async{Retries: known(0)})}, []string{rules.RetryAttempts}},
		"no retries, any timeout": {rules.Function{Timeout: known(900), HasDeadLetterQueue: true, Async: async(rules.Async{Retries: known(0)})}, []string{rules.RetryAttempts}},
		"no retries, any age":     {rules.Function{Timeout: known(10), HasDeadLetterQueue: true, Async: async(rules.Async{Retries: known(0), EventAge: known(60)})}, []string{rules.RetryAttempts}},
		"1 retry":                 {rules.Function{HasDeadLetterQueue: true, Async: async(rules.Async{Retries: known(1)})}, []string{rules.RetryAttempts}},
		"1 retry, in the lease":   {rules.Function{Timeout: known(53), HasDeadLetterQueue: true, Async: async(rules.Async{Retries: known(1)})}, []string{rules.RetryAttempts, rules.AsyncTimeout}},
		"1 retry, after it":       {rules.Function{Timeout: known(52), HasDeadLetterQueue: true, Async: async(rules.Async{Retries: known(1)})}, []string{rules.RetryAttempts}},
		"age of 60 s":             {rules.Function{HasDeadLetterQueue: true, Async: async(rules.Async{EventAge: known(60)})}, []string{rules.EventAge}},
		"age of 200 s":            {rules.Function{Timeout: known(10), HasDeadLetterQueue: true, Async: async(rules.Async{EventAge: known(200)})}, nil},
		"age of 1 retry":          {rules.Function{Timeout: known(100), HasDeadLetterQueue: true, Async: async(rules.Async{Retries: known(1), EventAge: known(160)})}, []string{rules.RetryAttempts, rules.AsyncTimeout}},
		"age below 1 retry":       {rules.Function{Timeout: known(10), HasDeadLetterQueue: true, Async: async(rules.Async{Retries: known(1), EventAge: known(69)})}, []string{rules.RetryAttempts, rules.EventAge}},
		"age below the attempts":  {rules.Function{Timeout: known(60), HasDeadLetterQueue: true, Async: async(rules.Async{EventAge: known(299)})}, []string{rules.EventAge}},
		"destination is gone":     {rules.Function{Async: async(rules.Async{HasFailureDestination: true, GoneDestination: "dead"})}, []string{rules.FailureDestination}},
		"dead-letter queue gone":  {rules.Function{HasDeadLetterQueue: true, GoneDeadLetterQueue: "dead", Async: async(kept)}, []string{rules.DeadLetterQueue}},
		"two tables":              {rules.Function{Versions: []rules.Version{{"1", "a", "f"}, {"2", "b", "f"}}}, []string{rules.AliasTables}},
		"two namespaces":          {rules.Function{Versions: []rules.Version{{"1", "a", "f"}, {"2", "a", "g"}}}, []string{rules.AliasTables}},
		"one table":               {rules.Function{Versions: []rules.Version{{"1", "a", "f"}, {"2", "a", "f"}}}, nil},
		"one table is unknown":    {rules.Function{Versions: []rules.Version{{"1", "a", "f"}, {"2", "", "f"}}}, nil},
		"each alias":              {rules.Function{Async: []rules.Async{kept, {Qualifier: "live"}}}, []string{rules.FailureDestination}},
		"level FATAL":             {rules.Function{LogLevel: "FATAL"}, []string{rules.LogLevel}},
		"level ERROR":             {rules.Function{LogLevel: "ERROR"}, []string{rules.LogLevel}},
		"level WARN":              {rules.Function{LogLevel: "WARN"}, []string{rules.LogLevel}},
		"level INFO":              {rules.Function{LogLevel: "INFO", LinesAreCounted: true}, nil},
		"level ERROR, counted":    {rules.Function{LogLevel: "ERROR", LinesAreCounted: true}, []string{rules.LogLevel}},
		"level WARN, counted":     {rules.Function{LogLevel: "WARN", LinesAreCounted: true}, []string{rules.LogLevel}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ids(t, c.function.Check(), c.want...)
		})
	}
}

func TestSubscriber(t *testing.T) {
	t.Parallel()
	good := rules.Subscriber{HasFailureDestination: true, Retries: rules.Known(185), EventAge: rules.Known(86400)}
	with := func(change func(*rules.Subscriber)) rules.Subscriber {
		s := good
		change(&s)
		return s
	}
	for name, c := range map[string]struct {
		subscriber rules.Subscriber
		timeout    rules.Number
		want       []string
	}{
		"good":                          {good, rules.Known(900), nil},
		"the zero value":                {rules.Subscriber{}, rules.Known(30), []string{rules.FailureDestination}},
		"nothing is known":              {rules.Subscriber{}, rules.Number{}, []string{rules.FailureDestination}},
		"one retry":                     {with(func(s *rules.Subscriber) { s.Retries = rules.Known(1) }), rules.Known(3), []string{rules.RetryAttempts}},
		"two retries":                   {with(func(s *rules.Subscriber) { s.Retries = rules.Known(2) }), rules.Known(3), nil},
		"the default age":               {with(func(s *rules.Subscriber) { s.EventAge = rules.Known(300) }), rules.Known(293), []string{rules.EventAge}},
		"the default age is enough":     {with(func(s *rules.Subscriber) { s.EventAge = rules.Known(300) }), rules.Known(292), nil},
		"the timeout is not known":      {with(func(s *rules.Subscriber) { s.EventAge, s.Waits = rules.Known(60), rules.Known(30) }), rules.Number{}, nil},
		"waits as long as the function": {with(func(s *rules.Subscriber) { s.Waits = rules.Known(30) }), rules.Known(30), []string{rules.AsyncTimeout}},
		"waits longer":                  {with(func(s *rules.Subscriber) { s.Waits = rules.Known(30) }), rules.Known(29), nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ids(t, c.subscriber.Check(c.timeout), c.want...)
		})
	}
}

// TestNumbers: what a text counts is what was judged.
func TestNumbers(t *testing.T) {
	t.Parallel()
	function := func(f rules.Function) []rules.Finding { return f.Check() }
	mapping := func(m rules.Mapping) []rules.Finding { m.ReportsFailures = true; return m.Check(known(10)) }
	bus := rules.Subscriber{HasFailureDestination: true, Retries: known(1)}
	async := []rules.Async{{HasFailureDestination: true}}
	for name, c := range map[string]struct {
		found []rules.Finding
		says  []string
	}{
		"attempts of a bus": {bus.Check(known(3)), []string{"MaxRetryAttempts 1:", "held twice", "at least 2"}},
		"last attempt":      {function(rules.Function{Timeout: known(173), Async: async}), []string{"timeout of 173 s", "after 180 s", "at most 172 s"}},
		"no alarm":          {function(rules.Function{LogLevel: "WARN", LinesAreCounted: true}), []string{"so no alarm sees it"}},
		"days":              {mapping(rules.Mapping{Kind: rules.SQS, Retention: known(5 * day)}), []string{"for 5 days", "of SQS for 4 by default"}},
		"sizes":             {mapping(rules.Mapping{Kind: rules.Kinesis, RecordSize: known(4609)}), []string{"up to 4609 KiB", "leaves 4608 KiB"}},
		"limits":            {mapping(rules.Mapping{Kind: rules.Kinesis, Retries: known(5), RecordAge: known(3600)}), []string{"after 5 retries or 3600 s,"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if len(c.found) != 1 {
				t.Fatalf("found %+v", c.found)
			}
			for _, text := range c.says {
				if !strings.Contains(c.found[0].Text, text) {
					t.Errorf("%q lacks %q", c.found[0].Text, text)
				}
			}
		})
	}
	for _, f := range function(rules.Function{LogLevel: "WARN"}) {
		if strings.Contains(f.Text, "alarm") {
			t.Errorf("there is no alarm: %s", f.Text)
		}
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
		"arn:aws:kafka:eu-west-1:111111111111:cluster/orders/0":               rules.Kafka,
		"arn:aws:kinesis:eu-west-1:111111111111:stream/orders/consumer/c:17":  rules.Kinesis,
		"arn:aws:mq:eu-west-1:111111111111:broker:orders:b-1":                 "",
		`{"Fn::Join":["",["arn:",{"Ref":"P"},":sqs:eu-west-1:1111:orders"]]}`: rules.SQS,
		"": "",
	} {
		if got := rules.KindOf(arn); got != want {
			t.Errorf("%q is %q, want %q", arn, got, want)
		}
	}
}
