package keyfuncs_test

import (
	"bytes"
	"compress/gzip"
	"encoding/base64"
	"encoding/json"
	"errors"
	"testing"

	"github.com/aws/aws-lambda-go/events"

	"github.com/lambdalock/lambdalock/internal/robustness/expect"
	"github.com/lambdalock/lambdalock/keyfuncs"
	"github.com/lambdalock/lambdalock/keyfuncs/services"
	"github.com/lambdalock/lambdalock/lock"
)

func packedLogs(data []byte, level int) (e events.CloudwatchLogsEvent) {
	var b bytes.Buffer
	z, err := gzip.NewWriterLevel(&b, level)
	if err != nil {
		panic(err)
	}
	_, _ = z.Write(data) // a Buffer takes everything
	_ = z.Close()
	e.AWSLogs.Data = base64.StdEncoding.EncodeToString(b.Bytes())
	return e
}

func unpackedLogs(t testing.TB, e events.CloudwatchLogsEvent) events.CloudwatchLogsData {
	t.Helper()
	d := expect.Value(e.AWSLogs.Parse())(t)
	return d
}

// logsWith returns the key of the batch in testdata after a change.
func logsWith(t *testing.T, change func(*events.CloudwatchLogsData)) (lock.Key, error) {
	t.Helper()
	d := unpackedLogs(t, load[events.CloudwatchLogsEvent](t, "cloudwatchlogs.json"))
	change(&d)
	b := expect.Value(json.Marshal(d))(t)
	return services.CloudWatchLogs(t.Context(), packedLogs(b, gzip.BestSpeed))
}

func TestCloudWatchLogs(t *testing.T) {
	t.Parallel()
	digest := "CjUzygHQCRsfInJqwr0XqrVwbcQ51qZXizWETfn6kfQ"
	want := lock.Key{Name: "cloudwatchlogs/%2Faws%2Flambda%2Forders/2026%2F11%2F21%2F%5B$LATEST%5D4f0c1e7a9b2d4c6e8a0b1c2d3e4f5a6b/" + digest, Event: digest}
	gives(t, "cloudwatchlogs.json", services.CloudWatchLogs, want)
	if got, err := logsWith(t, func(*events.CloudwatchLogsData) {}); got != want || err != nil {
		t.Errorf("the same batch, compressed by somebody else: %+v, %v; want %+v", got, err, want)
	}
}

func TestCloudWatchLogsTellsApart(t *testing.T) {
	t.Parallel()
	keys := map[string]func() (lock.Key, error){}
	for name, change := range map[string]func(*events.CloudwatchLogsData){
		"unchanged":         func(*events.CloudwatchLogsData) {},
		"another log event": func(d *events.CloudwatchLogsData) { d.LogEvents[1].ID += "0" },
		"the first only":    func(d *events.CloudwatchLogsData) { d.LogEvents = d.LogEvents[:1] },
		"another order":     func(d *events.CloudwatchLogsData) { d.LogEvents[0], d.LogEvents[1] = d.LogEvents[1], d.LogEvents[0] },
		"ids in one": func(d *events.CloudwatchLogsData) {
			d.LogEvents[0].ID += "/" + d.LogEvents[1].ID
			d.LogEvents = d.LogEvents[:1]
		},
		"digits moved": func(d *events.CloudwatchLogsData) {
			d.LogEvents[0].ID += "3"
			d.LogEvents[1].ID = d.LogEvents[1].ID[1:]
		},
		"another filter": func(d *events.CloudwatchLogsData) { d.SubscriptionFilters = []string{"warnings"} },
		"no filter":      func(d *events.CloudwatchLogsData) { d.SubscriptionFilters = nil },
		"an id as filter": func(d *events.CloudwatchLogsData) {
			d.SubscriptionFilters = append(d.SubscriptionFilters, d.LogEvents[0].ID)
			d.LogEvents = d.LogEvents[1:]
		},
		"another owner":  func(d *events.CloudwatchLogsData) { d.Owner = "210987654321" },
		"another group":  func(d *events.CloudwatchLogsData) { d.LogGroup = "g" },
		"another stream": func(d *events.CloudwatchLogsData) { d.LogStream = "s" },
	} {
		keys[name] = func() (lock.Key, error) { return logsWith(t, change) }
	}
	distinct(t, keys)
}

func TestCloudWatchLogsControlMessage(t *testing.T) { // F26
	t.Parallel()
	k, err := services.CloudWatchLogs(t.Context(), load[events.CloudwatchLogsEvent](t, "cloudwatchlogs-control.json"))
	if !errors.Is(err, keyfuncs.ErrIgnore) || k != (lock.Key{}) {
		t.Errorf("%+v, %v; want ErrIgnore", k, err)
	}
}

func TestCloudWatchLogsErrors(t *testing.T) { // F26, F31
	t.Parallel()
	with := func(change func(*events.CloudwatchLogsData)) error {
		_, err := logsWith(t, change)
		return err
	}
	raw := func(data string) error {
		_, err := services.CloudWatchLogs(t.Context(), events.CloudwatchLogsEvent{AWSLogs: events.CloudwatchLogsRawData{Data: data}})
		return err
	}
	whole := load[events.CloudwatchLogsEvent](t, "cloudwatchlogs.json").AWSLogs.Data
	refused(t, "no data", raw(""), "awslogs.data", "missing")
	refused(t, "not base64", raw("%"), "awslogs.data", "is not base64")
	refused(t, "not gzip", raw("e30="), "awslogs.data", "is not in gzip format")
	refused(t, "cut off", raw(whole[:len(whole)-16]), "awslogs.data", "unexpected EOF")
	refused(t, "not JSON", raw(packedLogs([]byte("{"), gzip.BestSpeed).AWSLogs.Data), "awslogs.data", "is not the JSON")
	refused(t, "no owner", with(func(d *events.CloudwatchLogsData) { d.Owner = "" }), "awslogs.data.owner", "missing")
	refused(t, "no group", with(func(d *events.CloudwatchLogsData) { d.LogGroup = "" }), "awslogs.data.logGroup", "missing")
	refused(t, "no stream", with(func(d *events.CloudwatchLogsData) { d.LogStream = "" }), "awslogs.data.logStream", "missing")
	refused(t, "no log events", with(func(d *events.CloudwatchLogsData) { d.LogEvents = nil }), "awslogs.data.logEvents", "empty")
	refused(t, "no id", with(func(d *events.CloudwatchLogsData) { d.LogEvents[1].ID = "" }), "awslogs.data.logEvents[1].id", "missing")
}

func TestCloudWatchLogsTooLarge(t *testing.T) {
	t.Parallel()
	b := expect.Value(json.Marshal(unpackedLogs(t, load[events.CloudwatchLogsEvent](t, "cloudwatchlogs.json"))))(t)
	bomb := func(size int) error {
		padded := append(bytes.Repeat([]byte(" "), size-len(b)), b...)
		_, err := services.CloudWatchLogs(t.Context(), packedLogs(padded, gzip.BestSpeed))
		return err
	}
	if err := bomb(64 << 20); err != nil {
		t.Errorf("at the limit: %v", err)
	}
	refused(t, "above the limit", bomb(64<<20+1), "awslogs.data", "64 MiB")
}
