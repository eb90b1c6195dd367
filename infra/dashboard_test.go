package infra_test

import (
	"strings"
	"testing"

	"github.com/lambdalock/lambdalock/infra"
)

func TestDashboard(t *testing.T) {
	stack := newStack()
	infra.NewLockTable(stack, s("Locks"), nil).AddDashboard(&infra.DashboardProps{DashboardName: s("locks")})
	p := only(t, stack, "AWS::CloudWatch::Dashboard")
	equal(t, "name", p["DashboardName"], `"locks"`)
	body := encoded(p["DashboardBody"])
	for _, metric := range []string{
		"ConsumedWriteCapacityUnits", "ConditionalCheckFailedRequests", "SuccessfulRequestLatency",
		"ThrottledRequests", "SystemErrors", "LeaseLost", "UpdateItem",
	} {
		if !strings.Contains(body, metric) {
			t.Errorf("the dashboard does not show %s", metric)
		}
	}

	stack = newStack()
	infra.NewLockTable(stack, s("Locks"), nil).AddDashboard(nil)
	if name := only(t, stack, "AWS::CloudWatch::Dashboard")["DashboardName"]; name != nil {
		t.Errorf("the dashboard has the name %v by default", name)
	}
}

func TestDashboardTwice(t *testing.T) {
	locks := infra.NewLockTable(newStack(), s("Locks"), nil)
	locks.AddDashboard(nil)
	if m := panicOf(t, func() { locks.AddDashboard(nil) }); m != "lambdalock: lock table Test/Locks already has a dashboard: call Dashboard once" {
		t.Error(m)
	}
}
