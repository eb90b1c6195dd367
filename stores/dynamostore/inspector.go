package dynamostore

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/aws/retry"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/lambdalock/lambdalock/lock/driver"
)

// reader is what a client needs beyond a [Client], so that people can look at
// rows. A *dynamodb.Client has it.
type reader interface {
	GetItem(context.Context, *dynamodb.GetItemInput, ...func(*dynamodb.Options)) (*dynamodb.GetItemOutput, error)
	Scan(context.Context, *dynamodb.ScanInput, ...func(*dynamodb.Options)) (*dynamodb.ScanOutput, error)
}

// patiently has the SDK repeat a read that is throttled. Package lock, which
// repeats the requests of locks, does not read.
func patiently(o *dynamodb.Options) { o.Retryer = retry.NewStandard() }

// Read implements [driver.Inspector]. It needs dynamodb:GetItem.
func (s *Store) Read(ctx context.Context, name string) (driver.Row, error) {
	client, err := s.reader()
	if err != nil {
		return driver.Row{}, err
	}
	out, err := client.GetItem(ctx, &dynamodb.GetItemInput{
		TableName: &s.table, Key: values{"lock": text(name)}, ConsistentRead: aws.Bool(true),
	}, patiently)
	if err != nil {
		return driver.Row{}, s.classifyRead(err, "dynamodb:GetItem")
	}
	return s.parse(out.Item)
}

// Rows implements [driver.Inspector]. It needs dynamodb:Scan, and reads the
// whole table, of which the prefix only hides a part: one read unit for each
// 4 KB.
// https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/Scan.html
func (s *Store) Rows(ctx context.Context, prefix string) iter.Seq2[driver.NamedRow, error] {
	return func(yield func(driver.NamedRow, error) bool) {
		client, err := s.reader()
		if err != nil {
			yield(driver.NamedRow{}, err)
			return
		}
		in := &dynamodb.ScanInput{TableName: &s.table, ConsistentRead: aws.Bool(true)}
		if prefix != "" {
			// The items of another table have no lock, which is a reserved word.
			in.FilterExpression = aws.String("begins_with(#lock, :prefix) OR attribute_not_exists(#lock)")
			in.ExpressionAttributeNames = map[string]string{"#lock": "lock"}
			in.ExpressionAttributeValues = values{":prefix": text(prefix)}
		}
		for {
			out, err := client.Scan(ctx, in, patiently)
			if err != nil {
				yield(driver.NamedRow{}, s.classifyRead(err, "dynamodb:Scan"))
				return
			}
			if !s.yieldAll(out.Items, yield) || len(out.LastEvaluatedKey) == 0 {
				return
			}
			in.ExclusiveStartKey = out.LastEvaluatedKey
		}
	}
}

// yieldAll yields the rows of one page, and reports whether to go on.
func (s *Store) yieldAll(items []map[string]types.AttributeValue, yield func(driver.NamedRow, error) bool) bool {
	for _, item := range items {
		if item["lock"] == nil {
			yield(driver.NamedRow{}, &driver.Error{
				Store: s.String(), Lasting: true, Answered: true, Unapplied: true, Hint: keyHint,
				Err: errors.New("an item has no attribute lock: is the table used by something else?"),
			})
			return false
		}
		name := str(item, "lock")
		row, err := s.parse(item)
		if err != nil {
			err = named(err, name)
		}
		if (err != nil || !row.Unknown()) && !yield(driver.NamedRow{Name: name, Row: row}, err) {
			return false
		}
	}
	return true
}

// named adds the name to the error about a row that is not one: unlike a
// function, who reads a table does not know which row that is.
func named(err error, name string) error {
	var e *driver.Error
	if errors.As(err, &e) {
		e.Err = fmt.Errorf("%q: %w", name, e.Err)
	}
	return err
}

func (s *Store) reader() (reader, error) {
	if client, ok := s.client.(reader); ok {
		return client, nil
	}
	return nil, &driver.ConfigError{Reason: fmt.Sprintf("the client of %s has no GetItem and Scan, so rows cannot be read: give dynamostore.New a *dynamodb.Client", s.String())}
}

// classifyRead is classify for a read: a person asked for it, not a function.
func (s *Store) classifyRead(err error, action string) error {
	err = s.classify(err)
	var e *driver.Error
	if !errors.As(err, &e) || e.Action == "" {
		return err
	}
	if e.Action == "dynamodb:UpdateItem" { // the answer named no action
		e.Action = action
	}
	switch {
	case strings.HasPrefix(e.Action, "kms:"):
		e.Hint = "the table is encrypted with your own key: allow yourself that action on the key"
	case e.Action == "dynamodb:Scan":
		e.Hint = "allow yourself that action on the table; a permission that is limited to a namespace (dynamodb:LeadingKeys) does not cover a scan, which reads the whole table"
	default:
		e.Hint = "allow yourself that action on the table"
	}
	return err
}
