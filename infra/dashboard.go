package infra

import (
	"fmt"

	"github.com/aws/aws-cdk-go/awscdk/v2/awscloudwatch"
	"github.com/aws/jsii-runtime-go"
)

// DashboardProps changes the defaults of LockTable.AddDashboard.
type DashboardProps struct {
	// DashboardName is the physical name of the dashboard. Nil means that
	// CloudFormation generates one, because two stacks cannot share a name.
	DashboardName *string
}

func (t *lockTable) AddDashboard(props *DashboardProps) awscloudwatch.Dashboard {
	if props == nil {
		props = &DashboardProps{}
	}
	if t.dashboard != nil {
		panic(fmt.Sprintf("lambdalock: lock table %s already has a dashboard: call AddDashboard once", t.path))
	}
	d := awscloudwatch.NewDashboard(t, jsii.String("Dashboard"), &awscloudwatch.DashboardProps{DashboardName: props.DashboardName})
	t.dashboard = d
	d.AddWidgets(
		graph("Lock table: write units and refused claims", t.writeUnits(), t.refusedClaims()),
		graph("Lock table: request latency (ms)", t.latency("p50"), t.latency("p99")),
	)
	const promises = "Broken promises"
	requests := graph("Lock table: throttled and failed requests", t.throttledRequests(), t.systemErrors())
	if t.emf {
		d.AddWidgets(requests, graph(promises, busiest("Sum", countNames()...)...))
		d.AddWidgets(
			graph("Time that claims waited (ms)", busiest("p99", "Waited")...),
			graph("Time that locks were held (ms)", busiest("p99", "HoldTime")...),
		)
		d.AddWidgets(graph("Refused claims", busiest("Sum", "Contended", "InProgress", "Duplicates")...))
	} else {
		d.AddWidgets(requests, graph(promises, t.countedInLogs()...))
	}
	t.showStates()
	return d
}

func countNames() (names []string) {
	for _, c := range counts {
		names = append(names, c.name)
	}
	return names
}

func (t *lockTable) countedInLogs() (metrics []awscloudwatch.IMetric) {
	for _, name := range countNames() {
		metrics = append(metrics, t.Metric(jsii.String(name), nil))
	}
	return metrics
}

// busiest returns metrics that functions write, each with a line for the ten
// namespaces of the account that have most of it: a graph with all of hundreds
// could not be read, and CloudWatch refuses one with more than 500 lines.
// https://docs.aws.amazon.com/AmazonCloudWatch/latest/monitoring/using-search-expressions.html
func busiest(statistic string, names ...string) (metrics []awscloudwatch.IMetric) {
	for _, name := range names {
		metrics = append(metrics, awscloudwatch.NewMathExpression(&awscloudwatch.MathExpressionProps{
			Expression: jsii.String(fmt.Sprintf(`SORT(SEARCH('{%s,%s} MetricName="%s"', '%s', 300), MAX, DESC, 10)`, emfNamespace, emfDimension, name, statistic)),
			Label:      jsii.String(name),
			Period:     period(),
		}))
	}
	return metrics
}

// showStates adds the states of the table's alarms to the dashboard, once there
// are both. Alarms of services are in the stacks of their functions, on which
// the dashboard must not depend.
func (t *lockTable) showStates() {
	if t.dashboard != nil && t.alarms != nil {
		props := &awscloudwatch.AlarmStatusWidgetProps{Width: jsii.Number(24)}
		props.Alarms = listOf(props.Alarms, t.tableStates)
		t.dashboard.AddWidgets(awscloudwatch.NewAlarmStatusWidget(props))
	}
}

// listOf returns alarms as a list of the type of the property, which is another
// one in older versions of the CDK.
func listOf[T any](_ *[]T, alarms []awscloudwatch.Alarm) *[]T {
	var list []T
	for _, a := range alarms {
		list = append(list, any(a).(T))
	}
	return &list
}

func graph(title string, metrics ...awscloudwatch.IMetric) awscloudwatch.GraphWidget {
	return awscloudwatch.NewGraphWidget(&awscloudwatch.GraphWidgetProps{
		Title: jsii.String(title), Left: &metrics, Width: jsii.Number(12), Height: jsii.Number(6),
	})
}
