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

// dashboard is the dashboard of a table, with the graphs that have a line for
// each service.
type dashboard struct {
	awscloudwatch.Dashboard
	services map[string]bool // that are shown
	graphs   []serviceGraph
}

// serviceGraph is a graph of metrics that functions write.
type serviceGraph struct {
	awscloudwatch.GraphWidget
	metrics    []string
	statistics []string
}

func (t *lockTable) AddDashboard(props *DashboardProps) awscloudwatch.Dashboard {
	if props == nil {
		props = &DashboardProps{}
	}
	if t.dashboard != nil {
		panic(fmt.Sprintf("lambdalock: lock table %s already has a dashboard: call AddDashboard once", t.path))
	}
	t.dashboard = &dashboard{
		Dashboard: awscloudwatch.NewDashboard(t, jsii.String("Dashboard"), &awscloudwatch.DashboardProps{DashboardName: props.DashboardName}),
		services:  map[string]bool{},
	}
	d := t.dashboard
	d.AddWidgets(
		graph("Lock table: write units and refused claims", t.writeUnits(), t.refusedClaims()),
		graph("Lock table: request latency (ms)", t.latency("p50"), t.latency("p99")),
	)
	d.AddWidgets(graph("Lock table: throttled and failed requests", t.throttledRequests(), t.systemErrors()), t.countGraph())
	if t.emf {
		d.AddWidgets(
			d.ofServices("Refused claims", []string{"Contended", "InProgress", "Duplicates"}, "Sum"),
			d.ofServices("Time that claims waited (ms)", []string{"Waited"}, "p50", "p99"),
			d.ofServices("Time that locks were held (ms)", []string{"HoldTime"}, "p50", "p99"),
		)
	}
	for _, c := range t.connections {
		t.showService(c)
	}
	t.showStates()
	return d.Dashboard
}

// countGraph returns the graph of the counts that have alarms.
func (t *lockTable) countGraph() awscloudwatch.IWidget {
	const title = "Broken promises"
	if t.emf {
		var names []string
		for _, c := range counts {
			names = append(names, c.name)
		}
		return t.dashboard.ofServices(title, names, "Sum")
	}
	var all []awscloudwatch.IMetric
	for _, c := range counts {
		all = append(all, t.Metric(jsii.String(c.name), nil))
	}
	return graph(title, all...)
}

// ofServices returns a graph to which showService adds lines.
func (d *dashboard) ofServices(title string, metrics []string, statistics ...string) awscloudwatch.IWidget {
	g := serviceGraph{graph(title), metrics, statistics}
	d.graphs = append(d.graphs, g)
	return g.GraphWidget
}

// showService adds what a function writes to the dashboard, if there is one.
func (t *lockTable) showService(c *connection) {
	if t.dashboard == nil || t.dashboard.services[*c.namespace] {
		return
	}
	t.dashboard.services[*c.namespace] = true
	for _, g := range t.dashboard.graphs {
		for _, name := range g.metrics {
			for _, statistic := range g.statistics {
				g.AddLeftMetric(t.serviceMetric(name, *c.namespace, statistic, period()))
			}
		}
	}
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
