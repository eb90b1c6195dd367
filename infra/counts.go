package infra

import (
	"fmt"
	"strings"

	"github.com/aws/aws-cdk-go/awscdk/v2"
	"github.com/aws/aws-cdk-go/awscdk/v2/awscloudwatch"
	"github.com/aws/jsii-runtime-go"
)

// count is something that the library counts and an alarm watches. Its name is
// that of the metric of telemetry/emf.
type count struct {
	name    string
	outcome string // as the log says it
	often   bool   // it is worth an alarm only if it happens more than once or twice
	meaning string
}

var counts = []count{
	{"Lost", "lost", false, "A handler lost its lease while it worked, so another one may have worked at the same time."},
	{"CompleteFailed", "complete_failed", false, "An event was handled but could not be completed, so it runs again when it is delivered again."},
	{"Unlocked", "unlocked", false, "A handler ran without a lock, because the table did not answer and FailOpen is set."},
	{"Interrupted", "interrupted", false, "A run of an event that must not run twice was interrupted, so it is not known whether its work was done."},
	{"StoreFailed", "store_failed", true, "Requests to the lock table fail after all attempts. Events fail, and come again."},
	{"TakenOver", "taken_over", true, "Locks were taken over from holders that died, for example at their timeout or for lack of memory."},
}

// period returns the time in which c is counted. It is longer for what happens
// often: an event that comes once in an hour and fails is delivered again
// within that time, while one failure among thousands passes.
func (c count) period() awscdk.Duration {
	if c.often {
		return awscdk.Duration_Minutes(jsii.Number(15))
	}
	return period()
}

// threshold returns the number that raises the alarm.
func (c count) threshold() float64 {
	if c.often {
		return 3
	}
	return 1
}

// message returns the log message.
func (c count) message() string { return "lambdalock: " + c.outcome }

// emfNamespace is that of the metrics of telemetry/emf, whose dimension is the
// namespace of the locks.
const (
	emfNamespace = "lambdalock"
	emfDimension = "service"
)

// logNamespace returns the namespace of what is counted in the logs of the
// table's functions. It has the table's name, because a metric filter takes
// dimensions only from fields of the log line:
// https://docs.aws.amazon.com/AmazonCloudWatch/latest/logs/FilterAndPatternSyntaxForMetricFilters.html
func (t *lockTable) logNamespace() *string {
	return jsii.String("lambdalock/" + *t.table.TableName())
}

func (t *lockTable) Metric(name *string, options *awscloudwatch.MetricOptions) awscloudwatch.Metric {
	namespace := t.logNamespace()
	if t.emf {
		namespace = jsii.String(emfNamespace)
	}
	m := awscloudwatch.NewMetric(&awscloudwatch.MetricProps{
		Namespace: namespace, MetricName: name, Statistic: jsii.String("Sum"), Period: period(),
	})
	if options != nil {
		m = m.With(options)
	}
	return m
}

// counted returns the metric of c that is counted in logs.
func (t *lockTable) counted(c count) awscloudwatch.IMetric {
	return t.Metric(jsii.String(c.name), &awscloudwatch.MetricOptions{Period: c.period()})
}

// serviceSum returns a metric that the functions of a namespace write.
func serviceSum(name, namespace string, period awscdk.Duration) awscloudwatch.IMetric {
	return awscloudwatch.NewMetric(&awscloudwatch.MetricProps{
		Namespace:     jsii.String(emfNamespace),
		MetricName:    jsii.String(name),
		DimensionsMap: &map[string]*string{emfDimension: jsii.String(namespace)},
		Statistic:     jsii.String("Sum"),
		Period:        period,
	})
}

// contendedShare returns the percentage of claims in a namespace that found the
// lock held. Duplicates of completed events are neither refused nor granted.
func contendedShare(namespace string) awscloudwatch.IMetric {
	length := period()
	of := func(name string) awscloudwatch.IMetric { return serviceSum(name, namespace, length) }
	return share("FILL(contended, 0) + FILL(inProgress, 0)", "FILL(completed, 0) + FILL(released, 0)", map[string]awscloudwatch.IMetric{
		"contended": of("Contended"), "inProgress": of("InProgress"), "completed": of("Completed"), "released": of("Released"),
	})
}

// fewRefusals is the number of refused claims in five minutes below which the
// share of claims that are refused says nothing.
const fewRefusals = 10

// share returns the percentage of claims that are refused.
func share(refused, granted string, metrics map[string]awscloudwatch.IMetric) awscloudwatch.IMetric {
	return awscloudwatch.NewMathExpression(&awscloudwatch.MathExpressionProps{
		Expression:   jsii.String(fmt.Sprintf("IF(%s < %d, 0, 100 * (%s) / (%s + %s))", refused, fewRefusals, refused, refused, granted)),
		UsingMetrics: &metrics,
		Label:        jsii.String("refused claims (%)"),
		Period:       period(),
	})
}

// isDimension reports whether CloudWatch takes text as a dimension's value:
// https://docs.aws.amazon.com/AmazonCloudWatch/latest/APIReference/API_Dimension.html
func isDimension(text string) bool {
	unprintable := func(r rune) bool { return r < ' ' || r > '~' }
	return strings.TrimSpace(text) != "" && text[0] != ':' && !strings.ContainsFunc(text, unprintable)
}
