package invoke

import (
	"context"
	"encoding/json"
	"fmt"
	"os"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/lambdalock/lambdalock/internal/local/localtable"
	"github.com/lambdalock/lambdalock/stores/dynamostore"
	"github.com/lambdalock/lambdalock/stores/dynamostore/dynamotest"
)

// createTables creates the function's own tables beside the embedded lock table
// and puts the items into them.
func (c *Command) createTables(ctx context.Context, table *localtable.Table) error {
	if len(c.Table) > 0 && table.URL == "" {
		return fmt.Errorf("--table is for the embedded lock table: unset %s, or create the tables where the lock table is", dynamostore.TableVariable)
	}
	for name, key := range c.Table {
		if err := dynamotest.Create(ctx, table.Client, name, key); err != nil {
			return fmt.Errorf("--table %s=%s: %w", name, key, err)
		}
	}
	for name, file := range c.Items {
		if c.Table[name] == "" {
			return fmt.Errorf("--items %s=%s: there is no --table %[1]s=KEY", name, file)
		}
		if err := putItems(ctx, table.Client, name, file); err != nil {
			return fmt.Errorf("--items %s=%s: %w", name, file, err)
		}
	}
	return nil
}

func putItems(ctx context.Context, client *dynamodb.Client, table, file string) error {
	text, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	var items []attributes
	if err := json.Unmarshal(text, &items); err != nil {
		return fmt.Errorf(`%w; it must hold an array of items, for example [{"account": "jane", "balance": 100}]`, err)
	}
	for _, item := range items {
		if _, err := client.PutItem(ctx, &dynamodb.PutItemInput{TableName: &table, Item: item}); err != nil {
			return err
		}
	}
	return nil
}

// attributes are those of an item. In JSON they are strings, numbers and
// objects of such values.
type attributes map[string]types.AttributeValue

// UnmarshalJSON implements json.Unmarshaler.
func (a *attributes) UnmarshalJSON(text []byte) error {
	var members map[string]json.RawMessage
	if err := json.Unmarshal(text, &members); err != nil {
		return err
	}
	*a = attributes{}
	for name, member := range members {
		var (
			s      string
			n      json.Number
			nested attributes
		)
		switch {
		case json.Unmarshal(member, &s) == nil && member[0] == '"':
			(*a)[name] = &types.AttributeValueMemberS{Value: s}
		case member[0] == '{' && json.Unmarshal(member, &nested) == nil:
			(*a)[name] = &types.AttributeValueMemberM{Value: nested}
		case json.Unmarshal(member, &n) == nil && n != "":
			(*a)[name] = &types.AttributeValueMemberN{Value: n.String()}
		default:
			return fmt.Errorf("the attribute %q is %s: only strings, numbers and objects are possible here", name, member)
		}
	}
	return nil
}
