package middleware_test

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/aws/aws-lambda-go/lambda"

	"github.com/lambdalock/lambdalock/internal/robustness/expect"
	"github.com/lambdalock/lambdalock/keyfuncs"
	"github.com/lambdalock/lambdalock/keyfuncs/awsevents"
	"github.com/lambdalock/lambdalock/lock"
	"github.com/lambdalock/lambdalock/middleware"
)

// busEvent returns an event as a subscriber with WITH_METADATA sends it.
func busEvent(id, group, delivery, does string) string {
	return fmt.Sprintf(`{"Data":{"does":%q},"Metadata":{},"SystemMetadata":{"aws:EventId":%q,"EventGroupId":%q,"aws:DeliveryType":%q}}`, does, id, group, delivery)
}

func (l *runLog) bus(ctx context.Context, e awsevents.CustomBusEvent) error {
	var data struct{ ID, Does string }
	if err := json.Unmarshal(e.Data, &data); err != nil {
		return err
	}
	return l.act(ctx, cmp.Or(e.SystemMetadata.EventID, data.ID), data.Does)
}

// TestEachEventBridgeEvent shows that the events of a group keep their order,
// that the array is an error after a failure, and that only the rest of that
// group runs again, as a retry or as a replay.
func TestEachEventBridgeEvent(t *testing.T) {
	underDeadline(t, func(t *testing.T, ctx context.Context) {
		f, runs := newFixture(), &runLog{}
		h := lambda.NewHandler(middleware.EachEventBridgeEvent(keyfuncs.CustomBusEvent, runs.bus, f.options()...))
		array := func(delivery, a2 string) []byte {
			return []byte("[" + strings.Join([]string{
				busEvent("a1", "a", delivery, ""), busEvent("b1", "b", delivery, ""), busEvent("a2", "a", delivery, a2), busEvent("b2", "b", delivery, ""), busEvent("a3", "a", delivery, ""),
			}, ",") + "]")
		}
		_, err := h.Invoke(ctx, array("LIVE", "fails"))
		var batch *middleware.BatchError
		if !errors.As(err, &batch) || !strings.Contains(err.Error(), "2 of 5 records failed; [2]: the record is bad") {
			t.Error(err)
		}
		if slices.Sort(runs.began); !slices.Equal(runs.began, []string{"a1", "a2", "b1", "b2"}) || runs.mostAtOne != 2 {
			t.Errorf("ran %q, %d at the same time", runs.began, runs.mostAtOne)
		}
		runs.began = nil
		if _, err := h.Invoke(ctx, array("LIVE", "")); err != nil || !slices.Equal(runs.began, []string{"a2", "a3"}) {
			t.Errorf("ran %q again, %v", runs.began, err)
		}
		runs.began = nil
		if _, err := h.Invoke(ctx, array("REPLAY", "")); err != nil || len(runs.began) > 0 {
			t.Errorf("the replay ran %q, %v", runs.began, err)
		}
		replay := lambda.NewHandler(middleware.EachEventBridgeEvent(keyfuncs.Prefix(keyfuncs.CustomBusEvent, "replay"), runs.bus, f.options()...))
		if _, err := replay.Invoke(ctx, array("REPLAY", "")); err != nil || len(runs.began) != 5 {
			t.Errorf("the replay on purpose ran %q, %v", runs.began, err)
		}
	})
}

// TestShapesOfACustomBus shows which payloads of a subscriber are handled, and
// that each event of them runs once.
func TestShapesOfACustomBus(t *testing.T) { // F26, F31
	envelope := func(id string) string {
		return fmt.Sprintf(`{"id":%q,"source":"shop","detail-type":"order","detail":{}}`, id)
	}
	for name, c := range map[string]struct {
		payload string
		ran     []string
		fails   string
	}{
		"one alone":           {busEvent("e1", "", "LIVE", ""), []string{"e1"}, ""},
		"envelopes":           {"[" + envelope("e1") + "," + envelope("e2") + "]", []string{"e1", "e2"}, ""},
		"an envelope alone":   {envelope("e1"), []string{"e1"}, ""},
		"one bare payload":    {"[" + busEvent("e1", "", "LIVE", "") + `,{"order":17}]`, []string{"e1"}, "1 of 2 records failed; [1]: lambdalock: no key: [1].SystemMetadata is missing"},
		"none":                {"[]", nil, "no records"},
		"null":                {"null", nil, ""},
		"the same twice":      {"[" + busEvent("e1", "", "LIVE", "") + "," + busEvent("e1", "", "REPLAY", "") + "]", []string{"e1"}, ""},
		"an S3 notification":  {`{"Records":[{"eventSource":"aws:s3","s3":{}}]}`, nil, "WITH_METADATA"},
		"metadata of numbers": {`[{"Data":{},"Metadata":{"n":1},"SystemMetadata":{"aws:EventId":"e1","aws:DeliveryType":"LIVE"}}]`, nil, "WITH_METADATA"},
	} {
		t.Run(name, func(t *testing.T) {
			underDeadline(t, func(t *testing.T, ctx context.Context) {
				f, runs := newFixture(), &runLog{}
				h := lambda.NewHandler(middleware.EachEventBridgeEvent(keyfuncs.CustomBusEvent, runs.bus, f.options()...))
				for range 2 {
					_, err := h.Invoke(ctx, []byte(c.payload))
					if fails := c.fails != "" || name == "null"; (err != nil) != fails || fails && !strings.Contains(err.Error(), c.fails) {
						t.Errorf("%v, want %q", err, c.fails)
					}
				}
				if slices.Sort(runs.began); !slices.Equal(runs.began, c.ran) {
					t.Errorf("ran %q, want %q", runs.began, c.ran)
				}
			})
		})
	}
}

// TestCustomBusEventAlone shows that a MaxBatchSize of 1 fits WithLock, and
// that an array does not.
func TestCustomBusEventAlone(t *testing.T) { // F26
	underDeadline(t, func(t *testing.T, ctx context.Context) {
		f, runs := newFixture(), &runLog{}
		h := lambda.NewHandler(middleware.WithLock(keyfuncs.CustomBusGroup, runs.bus, f.options()...))
		for range 2 {
			expect.Value(h.Invoke(ctx, []byte(busEvent("e1", "g", "LIVE", ""))))(t)
		}
		var refused *lock.NoKeyError
		if _, err := h.Invoke(ctx, []byte("["+busEvent("e1", "g", "LIVE", "")+"]")); !errors.As(err, &refused) {
			t.Errorf("an array: %v", err)
		}
		if !slices.Equal(runs.began, []string{"e1"}) {
			t.Errorf("ran %q", runs.began)
		}
	})
}
