package infra

import (
	"slices"

	"github.com/aws/aws-cdk-go/awscdk/v2"
	"github.com/aws/aws-cdk-go/awscdk/v2/awslambda"

	"github.com/lambdalock/lambdalock/infra/rules"
)

// mapping is an event source mapping.
type mapping struct {
	function reference
	source   reference
	settings rules.Mapping // without those of the source
}

// noteMapping notes a mapping. Its properties are read later.
func (v *survey) noteMapping(r awslambda.CfnEventSourceMapping) {
	path := *r.Node().Path()
	m := v.mappings[path]
	if m == nil {
		m = &mapping{}
		v.mappings[path] = m
		onValidation(v.last, func() { v.checkMapping(m) })
	}
	m.function, m.source = v.reference(r.Stack(), r.FunctionName()), v.reference(r.Stack(), r.EventSourceArn())
	v.readLater(r, path, func() {
		types := r.FunctionResponseTypes()
		m.settings = rules.Mapping{
			Name:            path,
			ReportsFailures: types != nil && slices.ContainsFunc(*types, func(t *string) bool { return *t == "ReportBatchItemFailures" }),
			Retries:         numberOr(r.MaximumRetryAttempts(), rules.Unlimited),
			RecordAge:       numberOr(r.MaximumRecordAgeInSeconds(), rules.Unlimited),
			BatchingWindow:  numberOr(r.MaximumBatchingWindowInSeconds(), 0),
			TumblingWindow:  numberOr(r.TumblingWindowInSeconds(), 0),

			HasFailureDestination: hasFailureDestination(r.Stack(), r.DestinationConfig()),
		}
		if topics := r.Topics(); topics != nil { // brokers have none
			m.settings.Kind = rules.Kafka
			kafka, _ := resolve(r.Stack(), r.SelfManagedKafkaEventSourceConfig()).(map[string]any)
			m.settings.SharesGroup = kafka["consumptionMode"] == "Queue" // in a CDK that has it
		}
	})
}

// hasFailureDestination reports whether a configuration of destinations has one
// for failures.
func hasFailureDestination(stack awscdk.Stack, config any) bool {
	destinations, _ := resolve(stack, config).(map[string]any)
	return destinations["onFailure"] != nil
}

// sourceKind returns the kind of the source, and its path if it is in the
// stage. The kind is empty if the source is not judged.
func (v *survey) sourceKind(source reference) (kind, path string) {
	for _, target := range v.targets(source) {
		if kind := v.sourceKinds[target]; kind != "" {
			return kind, target
		}
	}
	return rules.KindOf(source.text), ""
}

// checkMapping adds warnings about the function that m invokes, if it is
// connected.
func (v *survey) checkMapping(m *mapping) {
	function, _ := v.functionOf(m.function)
	c := v.connections[function]
	judged := m.settings
	if judged.Kind == "" {
		judged.Kind, judged.Source = v.sourceKind(m.source)
	}
	if c == nil || judged.Kind == "" {
		return
	}
	judged.Retention = v.retentionOf(judged.Source)
	if q := v.queues[judged.Source]; q != nil {
		judged.Queue = v.judgedQueue(q)
	}
	c.report(judged.Check(v.functions[function].settings.Timeout))
}
