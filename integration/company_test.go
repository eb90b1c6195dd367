package integration_test

import (
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/lambdalock/lambdalock/lock/driver"
	"github.com/lambdalock/lambdalock/lock/locktest"
	"github.com/lambdalock/lambdalock/stores/dynamostore"
	"github.com/lambdalock/lambdalock/stores/dynamostore/batching"
)

// TestConformanceInCompany runs the suite with a store that sends the requests
// of a batch together.
func TestConformanceInCompany(t *testing.T) {
	for _, backend := range tableServers {
		t.Run(backend.name, func(t *testing.T) {
			t.Parallel()
			p, w := onTable(backend.start)(t), newWire(0)
			store := dynamostore.New(batching.Client(newClient(p.Endpoints[0], w)), table)
			t.Cleanup(w.next.CloseIdleConnections)
			locktest.Run(t, locktest.Harness{
				Open:      func(*testing.T) driver.Store { return store },
				MakeNewer: func(t *testing.T, _ driver.Store, name string) { newerItem(t, p, name) },
			})
		})
	}
}

// TestStatements shows that the servers take the texts of package batching, and
// answer each as the embedded server does. Otherwise each request would be sent
// by itself, and nobody would notice. dynoxide takes one REMOVE
// only.
func TestStatements(t *testing.T) {
	const (
		insert = `INSERT INTO "locks" VALUE {'lock': ?, 'stamp': ?}`
		update = `UPDATE "locks" SET stamp = ? REMOVE event WHERE "lock" = ? AND rowFormat IS MISSING AND (((ownerToken IS MISSING OR heldUntil < ?) AND (stamp IS MISSING OR stamp < ?)) OR (ownerToken = ? AND heldUntil <= ? AND stamp <= ?)) AND (completed."e:1" IS MISSING OR completed."e:1" < ?) RETURNING ALL OLD *`
		remove = `UPDATE "locks" SET deleteAfter = ? REMOVE ownerToken REMOVE heldUntil WHERE "lock" = ? AND rowFormat IS MISSING AND ownerToken = ?`
	)
	for _, backend := range tableServers {
		t.Run(backend.name, func(t *testing.T) {
			t.Parallel()
			p, w := onTable(backend.start)(t), newWire(0)
			t.Cleanup(w.next.CloseIdleConnections)
			client := newClient(p.Endpoints[0], w)
			send := func(statement string, values ...types.AttributeValue) *types.BatchStatementResponse {
				t.Helper()
				out, err := client.BatchExecuteStatement(t.Context(), &dynamodb.BatchExecuteStatementInput{Statements: []types.BatchStatementRequest{{
					Statement: &statement, Parameters: values, ReturnValuesOnConditionCheckFailure: types.ReturnValuesOnConditionCheckFailureAllOld,
				}}})
				if err != nil {
					t.Fatal(err)
				}
				return &out.Responses[0]
			}
			want := func(what string, r *types.BatchStatementResponse, code string) {
				t.Helper()
				got, message := "", ""
				if r.Error != nil {
					got, message = string(r.Error.Code), aws.ToString(r.Error.Message)
				}
				if got != code {
					t.Errorf("%s: %q (%s), want %q", what, got, message, code)
				}
			}
			text := func(s string) types.AttributeValue { return &types.AttributeValueMemberS{Value: s} }
			claim := func(name, stamp string) *types.BatchStatementResponse {
				return send(update, text(stamp), text(name), text(stamp), text(stamp), text("token"), text(stamp), text(stamp), &types.AttributeValueMemberN{Value: "1"})
			}
			want("insert", send(insert, text("a"), text("2")), "")
			want("insert again", send(insert, text("a"), text("2")), "DuplicateItem")
			r := claim("a", "3")
			want("update", r, "")
			if len(r.Item) != 2 {
				t.Errorf("the old item is %v", r.Item)
			}
			want("update of the past", claim("a", "1"), "ConditionalCheckFailed")
			want("update of nothing", claim("b", "1"), "ConditionalCheckFailed")
			if backend.name != "dynoxide" {
				want("release by another", send(remove, &types.AttributeValueMemberN{Value: "1"}, text("a"), text("token")), "ConditionalCheckFailed")
			}
		})
	}
}
