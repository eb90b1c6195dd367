package doctor

import (
	"context"
	"errors"
	"testing"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
)

// tables is a client that lists tables, one on each page.
type tables []string

func (t tables) ListTables(_ context.Context, in *dynamodb.ListTablesInput, _ ...func(*dynamodb.Options)) (*dynamodb.ListTablesOutput, error) {
	if len(t) == 0 {
		return nil, errors.New("denied")
	}
	for i := range t {
		if in.ExclusiveStartTableName == nil || i > 0 && t[i-1] == *in.ExclusiveStartTableName {
			out := &dynamodb.ListTablesOutput{TableNames: t[i : i+1]}
			if i+1 < len(t) {
				out.LastEvaluatedTableName = &t[i]
			}
			return out, nil
		}
	}
	return nil, errors.New("no such page")
}

func TestSimilar(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		tables tables
		want   string
	}{
		"one letter":    {tables{"customers", "orders-locks"}, ". Here there is orders-locks"},
		"swapped":       {tables{"ordres-lock"}, ". Here there is ordres-lock"},
		"a stage":       {tables{"prod-orders-lock", "Orders-Lock"}, ". Here there is prod-orders-lock, Orders-Lock"},
		"other case":    {tables{"ORDERS-LOCK"}, ". Here there is ORDERS-LOCK"},
		"a letter less": {tables{"ordrs-lock"}, ". Here there is ordrs-lock"},
		"a quarter":     {tables{"ordrs-lock-v"}, ". Here there is ordrs-lock-v"},
		"more":          {tables{"ordrs-lck-ve"}, ""},
		"too many":      {tables{"orders-lock1", "orders-lock2", "orders-lock3", "orders-lock4", "orders-lock5", "orders-lock6"}, ". Here there is orders-lock1, orders-lock2, orders-lock3, orders-lock4, orders-lock5"},
		"nothing alike": {tables{"customers", "x", "invoices"}, ""},
		"denied":        {nil, ". Whether another table has a similar name cannot be said: denied"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			found := []Line{{Level: Error, Check: checkWrite, For: forName, Text: "no"}, {Level: Warning, For: forStore, Text: "other"}}
			Similar(t.Context(), c.tables, "orders-lock", found)
			if found[0].Text != "no"+c.want || found[1].Text != "other" {
				t.Errorf("%q, want %q", found[0].Text, c.want)
			}
		})
	}
}
