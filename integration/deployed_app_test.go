package integration_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/lambda"
	lambdatypes "github.com/aws/aws-sdk-go-v2/service/lambda/types"

	"github.com/lambdalock/lambdalock/integration/servers"
	"github.com/lambdalock/lambdalock/internal/robustness/expect"
	"github.com/lambdalock/lambdalock/internal/robustness/fault"
	"github.com/lambdalock/lambdalock/lock"
	"github.com/lambdalock/lambdalock/lock/driver"
	"github.com/lambdalock/lambdalock/middleware"
	"github.com/lambdalock/lambdalock/stores/memstore"
)

// workWithTemplates deploys each template that users copy, and works with the
// command on what stands there: nothing is wrong, and a lock that exec holds is
// seen by list. Then every alarm hears of its fault, and of no other, from the
// lines that were really logged.
func workWithTemplates(t *testing.T, moto servers.Server, command string) {
	lines := loggedLines(t)
	for i, c := range []struct {
		name   string
		deploy func(*stacks) deployedTemplate
	}{
		{"the app of infra", (*stacks).deployApp},
		{"table.yaml", (*stacks).deployTable},
		{"table-sam.yaml", (*stacks).deploySAM},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			s := newStacks(t, moto.Endpoint, fmt.Sprint(200000000000+i))
			d := c.deploy(s)
			if bad, status := examine(t, command, s.endpoint, "--acknowledge", "latency", "--function", d.function); len(bad) > 0 || status != 0 {
				t.Errorf("doctor finds %q, status %d", bad, status)
			}
			out, told, err := s.run(t.Context(), command, "exec", "--function", d.function, "--key", "n", "--", command, "list", "--function", d.function)
			if err != nil || !strings.Contains(out, d.namespace+"/n") || !strings.Contains(out, "held") {
				t.Errorf("list under exec: %v\n%s%s", err, out, told)
			}
			d.checkAlarms(s, lines)
		})
	}
}

// deployedTemplate is what stands where a template was deployed.
type deployedTemplate struct {
	function, namespace, table, group string
}

func contents(t *testing.T, file string) string {
	t.Helper()
	return string(expect.Value(os.ReadFile(file))(t))
}

// deployApp deploys what cdk deploy does, but for the notifications of the
// bucket, which a function of the CDK makes.
func (s *stacks) deployApp() deployedTemplate {
	var template map[string]map[string]any
	expect.Must(s.t, json.Unmarshal([]byte(contents(s.t, "../infra/app/testdata/template.json")), &template))
	delete(template, "Rules")
	delete(template["Parameters"], "BootstrapVersion")
	assets := map[string][]byte{}
	for id, r := range template["Resources"] {
		properties, _ := r.(map[string]any)["Properties"].(map[string]any)
		code, _ := properties["Code"].(map[string]any)
		if key, ok := code["S3Key"].(string); ok {
			assets[key] = emptyZip
		}
		if r.(map[string]any)["Type"] == "Custom::S3BucketNotifications" {
			delete(template["Resources"], id)
		}
	}
	s.upload("cdk-hnb659fds-assets-"+s.account+"-eu-west-1", assets)
	names := s.deploy("LambdalockApp", string(expect.Value(json.Marshal(template))(s.t)), nil)
	return deployedTemplate{names["Handler886CB40B"], "uploads", names["LocksTable84FB9352"], names["HandlerLogs6FD01908"]}
}

// packaged uploads the local files of a template, as the commands package do.
func (s *stacks) packaged(file string) string {
	bucket := "package-" + s.account
	s.upload(bucket, map[string][]byte{"code.zip": emptyZip, "logs.json": []byte(contents(s.t, "../infra/alarms/logs.json"))})
	return strings.NewReplacer(
		"CodeUri: dist", "CodeUri: s3://"+bucket+"/code.zip", "TemplateURL: alarms/logs.json", "TemplateURL: https://s3.amazonaws.com/"+bucket+"/logs.json",
	).Replace(contents(s.t, file))
}

func (s *stacks) deploySAM() deployedTemplate {
	names := s.deploy("Orders", s.packaged("../infra/table-sam.yaml"), nil)
	return deployedTemplate{names["Handler"], "orders", names["LockTable"], names["HandlerLogs"]}
}

// deployTable deploys the template for functions that are there already.
func (s *stacks) deployTable() deployedTemplate {
	(&account{t: s.t}).makeRole(s.endpoint)
	s.logs("CreateLogGroup", map[string]any{"logGroupName": "thumbnails"}, nil)
	names := s.deploy("Table", s.packaged("../infra/table.yaml"), map[string]string{
		"HandlerRole": "thumbnails", "HandlerLogGroup": "thumbnails", "Alerts": "arn:aws:sns:eu-west-1:" + s.account + ":alerts",
	})
	_, err := lambda.NewFromConfig(s.config()).CreateFunction(s.t.Context(), &lambda.CreateFunctionInput{
		FunctionName: aws.String("thumbnails"), Runtime: lambdatypes.RuntimeProvidedal2023, Handler: aws.String("bootstrap"),
		Role: aws.String("arn:aws:iam::" + s.account + ":role/thumbnails"), Code: &lambdatypes.FunctionCode{ZipFile: emptyZip},
		Environment: &lambdatypes.Environment{Variables: map[string]string{"LOCK_TABLE_NAME": names["LockTable"], "LOCK_NAMESPACE": "orders"}},
	})
	expect.Must(s.t, err)
	return deployedTemplate{"thumbnails", "orders", names["LockTable"], "thumbnails"}
}

// loggedLines returns the lines that a function logs when each of the faults
// happens to it that alarms on the log are for, and in ordinary runs: each line
// with the name of the fault's alarm.
func loggedLines(t *testing.T) map[string]string {
	t.Helper()
	lines := map[string]string{}
	for _, handler := range []func(io.Writer) slog.Handler{
		func(w io.Writer) slog.Handler { return slog.NewTextHandler(w, nil) },
		func(w io.Writer) slog.Handler { return slog.NewJSONHandler(w, nil) },
	} {
		for fault, logged := range faultLines(t, handler) {
			for line := range strings.Lines(logged) {
				lines[strings.TrimSpace(line)] = fault
			}
		}
	}
	return lines
}

// faultLines returns what is logged in each fault.
func faultLines(t *testing.T, handler func(io.Writer) slog.Handler) map[string]string {
	t.Helper()
	memory, logged := memstore.New(), map[string]string{}
	run := func(alarm string, store driver.Store, opts ...middleware.Option) {
		var lines strings.Builder // nobody writes into it once WithLock has returned
		key := func(_ context.Context, event string) (lock.Key, error) {
			return lock.Key{Name: event, Event: event}, nil
		}
		handle := func(context.Context, string) error { return nil }
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		_ = middleware.WithLock(key, handle, append(opts, middleware.Store(store), middleware.Namespace("n"), middleware.Logger(slog.New(handler(&lines))))...)(ctx, alarm)
		logged[alarm] += lines.String()
	}
	acquired := func(err error) fault.Hooks {
		return fault.Hooks{Store: memory, OnAcquire: func(context.Context, *driver.Claim) (driver.Row, bool, error) { return driver.Row{}, false, err }}
	}
	settled := func(err error) fault.Hooks {
		return fault.Hooks{Store: memory, OnSettle: func(context.Context, *driver.Settlement) (driver.Row, bool, error) { return driver.Row{}, false, err }}
	}
	denied := &driver.Error{Err: errors.New("denied"), Answered: true, Lasting: true}
	run("StoreFailed", acquired(denied))
	run("Unlocked", acquired(&driver.Error{Err: errors.New("no answer")}), middleware.FailOpen())
	run("CompleteFailed", settled(denied))
	run("Lost", settled(nil)) // the row is that of nobody
	die(t, memory, lock.Key{Name: "TakenOver"})
	run("TakenOver", memory)
	die(t, memory, lock.Key{Name: "Interrupted", Event: "Interrupted"})
	run("Interrupted", memory, middleware.OnInterrupted(middleware.Fail))
	for range 2 { // a success, and a duplicate
		run("none", memory)
	}
	return logged
}

// die leaves the row of a process that died an hour ago while it held a lock.
func die(t *testing.T, store driver.Store, key lock.Key) {
	t.Helper()
	past := fault.Hooks{Store: store, OnAcquire: func(ctx context.Context, c *driver.Claim) (driver.Row, bool, error) {
		old := *c
		old.Stamp, old.Now, old.Until = c.Stamp.Add(-time.Hour), c.Now.Add(-time.Hour), c.Until.Add(-time.Hour)
		row, ok, err := store.Acquire(ctx, &old)
		row.Until = c.Until
		return row, ok, err
	}}
	locker := newLocker(t, past, lock.Options{Namespace: "n", Lease: lock.FixedLease(time.Minute)})
	expect.Value(locker.Acquire(t.Context(), key))(t)
}

// checkAlarms checks each alarm on the log with the lines that its fault, and
// every other one, really logged.
func (d *deployedTemplate) checkAlarms(s *stacks, lines map[string]string) {
	s.t.Helper()
	metrics, watched := s.countedIn(d.group), s.watched()
	if counted := slices.Sorted(maps.Keys(metrics)); len(counted) != 6 || !slices.Equal(counted, watched) {
		s.t.Errorf("the log is counted in %q, and alarms watch %q", counted, watched)
	}
	s.put(d.group, slices.Collect(maps.Keys(lines)))
	// A run without a lock is one whose store failed, and an interrupted one is
	// taken over.
	also := map[string]string{"StoreFailed": "Unlocked", "TakenOver": "Interrupted"}
	for metric, pattern := range metrics {
		name, ok := strings.CutPrefix(metric, "lambdalock/"+d.table+" ")
		want := map[string]int{name: 2} // as text and as JSON
		if fault := also[name]; fault != "" {
			want[fault] = 2
		}
		got := map[string]int{}
		for _, line := range s.matching(d.group, pattern) {
			got[lines[line]]++
		}
		if !ok || !maps.Equal(got, want) {
			s.t.Errorf("%s: %s counts %v, want %v", metric, pattern, got, want)
		}
	}
}
