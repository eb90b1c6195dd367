package dynamostore_test

import (
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/lambdalock/lambdalock/lock/driver"
)

// TestCompletedAtOfAnyVersion reads the numbers of completed events as versions
// without a time of completion write them, and as those that know more decimals
// would. The server drops the zeros at the end.
func TestCompletedAtOfAnyVersion(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	until := time.Date(2026, 11, 21, 12, 0, 0, 526e6, time.UTC)
	day := until.Truncate(time.Second).Add(-24 * time.Hour)
	events := []struct {
		name, number string
		at           time.Time
	}{
		{"first and unknown", "1795262400526", time.Time{}},
		{"unknown", "1795262400526.00001", time.Time{}},
		{"a day", "1795262400526.000020008640", day},
		{"without zeros", "1795262400526.00003000864", day},
		{"place ten", "1795262400526.0001", time.Time{}},
		{"more decimals", "1795262400526.0001100086400123", day},
		{"a year", "1795262400526.0001231536", until.Truncate(time.Second).Add(-31_536_000 * time.Second)},
		{"last", "1795262400526.0001300000001", until.Truncate(time.Second).Add(-time.Second)},
	}
	completed := values{}
	for _, e := range events {
		completed[e.name] = &types.AttributeValueMemberN{Value: e.number}
	}
	putItem(t, f, "a/n", values{
		"stamp":     &types.AttributeValueMemberS{Value: "2026-11-21T11:00:00.000000Z"},
		"completed": &types.AttributeValueMemberM{Value: completed},
	})
	row, err := f.store.Read(t.Context(), "a/n")
	if err != nil || len(row.Memory.Completed) != len(events) {
		t.Fatalf("%+v, error %v", row, err)
	}
	for i, e := range events {
		got := row.Memory.Completed[i]
		if want := (driver.CompletedEvent{Event: e.name, Until: until, At: e.at}); got.Event != want.Event || !got.Until.Equal(want.Until) || !got.At.Equal(want.At) {
			t.Errorf("event %d is %+v, want %+v", i, got, want)
		}
	}
}

// TestInterruptedSinceNobodyKnows: an event whose time of interruption cannot
// be read is interrupted all the same.
func TestInterruptedSinceNobodyKnows(t *testing.T) { // F19
	t.Parallel()
	f := newFixture(t)
	run := func(since string) types.AttributeValue {
		return &types.AttributeValueMemberM{Value: values{
			"holder": &types.AttributeValueMemberS{Value: "h"}, "since": &types.AttributeValueMemberS{Value: since},
			"until": &types.AttributeValueMemberN{Value: "1795262400526"},
		}}
	}
	putItem(t, f, "a/n", values{
		"stamp":       &types.AttributeValueMemberS{Value: "2026-11-21T11:00:00.000000Z"},
		"interrupted": &types.AttributeValueMemberM{Value: values{"e1": run("yesterday"), "e2": run("")}},
	})
	row, err := f.store.Read(t.Context(), "a/n")
	if err != nil || len(row.Memory.Interrupted) != 2 || !row.Memory.Interrupted[0].Since.IsZero() || row.Memory.Interrupted[0].Holder != "h" {
		t.Errorf("%+v, error %v", row, err)
	}
}
