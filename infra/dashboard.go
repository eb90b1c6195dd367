package infra

import (
	"fmt"

	"github.com/aws/aws-cdk-go/awscdk/v2/awscloudwatch"
	"github.com/aws/jsii-runtime-go"
)

// DashboardProps changes the defaults of LockTable.Dashboard.
type DashboardProps struct {
	// DashboardName is the physical name of the dashboard. Nil means that
	// CloudFormation generates one, because two stacks cannot share a name.
	DashboardName *string
}

func (t *lockTable) AddDashboard(props *DashboardProps) awscloudwatch.Dashboard {
	if props == nil {
		props = &DashboardProps{}
	}
	if t.hasDashboard {
		panic(fmt.Sprintf("lambdalock: lock table %s already has a dashboard: call Dashboard once", t.path))
	}
	t.hasDashboard = true
	d := awscloudwatch.NewDashboard(t, jsii.String("Dashboard"), &awscloudwatch.DashboardProps{DashboardName: props.DashboardName})
	d.AddWidgets(
		graph("Lock table: write units and refused claims", t.writeUnits(), t.refusedClaims()),
		graph("Lock table: request latency (ms)", t.latency("p50"), t.latency("p99")),
	)
	d.AddWidgets(
		graph("Lock table: throttled and failed requests", t.throttledRequests(), t.systemErrors()),
		graph("Lost leases", t.lostLeases()),
	)
	return d
}

func graph(title string, metrics ...awscloudwatch.IMetric) awscloudwatch.IWidget {
	return awscloudwatch.NewGraphWidget(&awscloudwatch.GraphWidgetProps{
		Title: jsii.String(title), Left: &metrics, Width: jsii.Number(12), Height: jsii.Number(6),
	})
}
