package infra_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/lambdalock/lambdalock/infra"
)

func TestDashboard(t *testing.T) {
	for _, emf := range []bool{false, true} {
		t.Run(fmt.Sprint("emf ", emf), func(t *testing.T) {
			stack := newStack()
			locks := infra.NewLockTable(stack, s("Locks"), &infra.LockTableProps{EMF: &emf})
			locks.Connect(newFunction(stack, "Before", nil), nil)
			locks.AddDashboard(&infra.DashboardProps{DashboardName: s("locks")})
			locks.AddAlarms(nil)
			locks.Connect(newFunction(stack, "After", nil), nil)
			p := only(t, stack, "AWS::CloudWatch::Dashboard")
			equal(t, "name", p["DashboardName"], `"locks"`)
			body := encoded(p["DashboardBody"])
			for text, want := range map[string]bool{
				"ConsumedWriteCapacityUnits": true, "ConditionalCheckFailedRequests": true, "SuccessfulRequestLatency": true,
				"ThrottledRequests": true, "SystemErrors": true, "UpdateItem": true, `LocksThrottles`: true,
				`lambdalock/`: !emf, `LocksLost`: !emf,
				`SEARCH('{lambdalock,service} MetricName=\\\"Lost\\\"', 'Sum', 300)`: emf, `MetricName=\\\"HoldTime\\\"', 'p99'`: emf,
				"Waited": emf, "Contended": emf,
			} {
				if strings.Contains(body, text) != want {
					t.Errorf("the dashboard shows %s: %v, want %v", text, !want, want)
				}
			}
		})
	}
}

// TestDashboardByDefault: the dashboard has no name that two stacks would
// share, and shows no alarms that do not exist.
func TestDashboardByDefault(t *testing.T) {
	stack := newStack()
	infra.NewLockTable(stack, s("Locks"), nil).AddDashboard(nil)
	p := only(t, stack, "AWS::CloudWatch::Dashboard")
	if name := p["DashboardName"]; name != nil {
		t.Errorf("the dashboard has the name %v", name)
	}
	if body := encoded(p["DashboardBody"]); strings.Contains(body, "alarm") || !strings.Contains(body, "Lost") {
		t.Error(body)
	}
}

func TestDashboardTwice(t *testing.T) {
	locks := infra.NewLockTable(newStack(), s("Locks"), nil)
	locks.AddDashboard(nil)
	if m := panicOf(t, func() { locks.AddDashboard(nil) }); m != "lambdalock: lock table Test/Locks already has a dashboard: call AddDashboard once" {
		t.Error(m)
	}
}
