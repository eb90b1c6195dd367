package fakedynamo

import (
	"context"
	"errors"
	"reflect"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/smithy-go"

	"github.com/lambdalock/lambdalock/internal/robustness/expect"
)

func TestFaults(t *testing.T) {
	t.Parallel()
	cases := []struct {
		name  string
		fault Fault
		code  string // of the answer, "" for none
		count string // what the request has counted
	}{
		{"drop before", DropBefore, "", ""},
		{"apply then drop", ApplyThenDrop, "", "1"},
		{"apply then 500", ApplyThen500, "InternalServerError", "1"},
		{"throttle", Throttle, "ProvisionedThroughputExceededException", ""},
		{"conflict", Conflict, "TransactionConflictException", ""},
		{"replicated conflict", ReplicatedConflict, "ReplicatedWriteConflictException", ""},
		{"deny", Deny, "AccessDeniedException", ""},
		{"deny key", DenyKey, "AccessDeniedException", ""},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			s := newServer(t)
			s.OnRequest(func(Request) Fault { return c.fault })
			_, err := newClient(t, s).UpdateItem(t.Context(), increment())
			if err == nil {
				t.Fatal("no error")
			}
			var api smithy.APIError
			if answered := errors.As(err, &api); answered != (c.code != "") || answered && api.ErrorCode() != c.code {
				t.Errorf("error = %v", err)
			}
			if got := count(s); got != c.count || s.Requests() != 1 {
				t.Errorf("n = %q after %d requests, want %q after 1", got, s.Requests(), c.count)
			}
		})
	}
}

func TestDenyNamesTheTable(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	s.OnRequest(func(Request) Fault { return Deny })
	_, err := newClient(t, s).UpdateItem(t.Context(), increment())
	want := "User: arn:aws:sts::123456789012:assumed-role/app/fn is not authorized to perform: dynamodb:UpdateItem on resource: arn:aws:dynamodb:us-east-1:123456789012:table/locks because no identity-based policy allows the dynamodb:UpdateItem action"
	if err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("error = %v", err)
	}
}

func TestHang(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	ctx, cancel := context.WithCancel(t.Context())
	s.OnRequest(func(Request) Fault {
		cancel() // the request has arrived; nothing but Hang can follow
		return Hang
	})
	if _, err := newClient(t, s).UpdateItem(ctx, increment()); !errors.Is(err, context.Canceled) {
		t.Errorf("error = %v", err)
	}
	if got := count(s); got != "" {
		t.Errorf("n = %q", got)
	}
}

func TestOmitItem(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	client := newClient(t, s)
	in := increment()
	in.ConditionExpression = aws.String("attribute_not_exists(id)")
	in.ReturnValuesOnConditionCheckFailure = types.ReturnValuesOnConditionCheckFailureAllOld
	expect.Value(client.UpdateItem(t.Context(), in))(t)
	for name, fault := range map[string]Fault{"none": None, "omit item": OmitItem} {
		t.Run(name, func(t *testing.T) {
			s.OnRequest(func(Request) Fault { return fault })
			var failed *types.ConditionalCheckFailedException
			if _, err := client.UpdateItem(t.Context(), in); !errors.As(err, &failed) {
				t.Fatalf("error = %v", err)
			}
			if (failed.Item == nil) != (fault == OmitItem) {
				t.Errorf("Item = %v", failed.Item)
			}
		})
	}
	s.OnRequest(func(Request) Fault { return OmitItem })
	if _, err := client.UpdateItem(t.Context(), increment()); err != nil {
		t.Errorf("a request that succeeds: %v", err)
	}
}

func TestOnRequest(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	var got []Request
	s.OnRequest(func(r Request) Fault { got = append(got, r); return None })
	updateItem(t, s, `"UpdateExpression":"REMOVE a"`)
	send(t, s, "DescribeTable", `{"TableName":"locks"}`)
	send(t, s, "UpdateItem", `{`)
	want := []Request{{Operation: "UpdateItem", Key: "k"}, {Operation: "DescribeTable", N: 1}, {Operation: "UpdateItem", N: 1}}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("requests = %+v, want %+v", got, want)
	}
	s.OnRequest(nil)
	updateItem(t, s, `"UpdateExpression":"REMOVE a"`)
	if len(got) != len(want) || s.Requests() != 3 {
		t.Errorf("after OnRequest(nil): %d calls, Requests() = %d", len(got), s.Requests())
	}
}
