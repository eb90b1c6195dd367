package powertools

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"strconv"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

// attribute returns the name that the table has for an attribute.
func (t *Table[E]) attribute(name string) string {
	return cmp.Or(t.Attributes[name], name)
}

// get returns an attribute by its default name, or nil.
func (t *Table[E]) get(item attributes, name string) types.AttributeValue {
	return item[t.attribute(name)]
}

// key returns the primary key of a record.
func (t *Table[E]) key(r *record) attributes {
	if t.SortKey != "" {
		return attributes{t.attribute("id"): str(t.PartitionKey), t.SortKey: str(r.id)}
	}
	return attributes{t.attribute("id"): str(r.id)}
}

func str(s string) types.AttributeValue { return &types.AttributeValueMemberS{Value: s} }

func num(n int64) types.AttributeValue {
	return &types.AttributeValueMemberN{Value: strconv.FormatInt(n, 10)}
}

// text returns a string, or "" for anything else.
func text(v types.AttributeValue) string {
	s, _ := plain(v).(string)
	return s
}

// number returns a number without its fraction, or -1 for anything else.
func number(v types.AttributeValue) int64 {
	s, _ := plain(v).(json.Number)
	f, err := s.Float64()
	if err != nil {
		return -1
	}
	return int64(f)
}

// decode decodes the stored result: Python stores JSON, TypeScript a value of
// DynamoDB.
func (t *Table[E]) decode(r *record, result any) error {
	doc, err := []byte(text(r.data)), error(nil)
	if t.Language == TypeScript {
		doc, err = json.Marshal(plain(r.data))
	}
	if len(doc) == 0 { // a handler that returned nothing
		return nil
	}
	if err == nil {
		err = json.Unmarshal(doc, result)
	}
	if err != nil {
		return t.failure(fmt.Errorf("the result of %s does not fit the handler's: let that return what the old function did: %w", r.id, err), "")
	}
	return nil
}

// encode is the inverse of decode.
func (t *Table[E]) encode(result any) (types.AttributeValue, error) {
	doc, err := json.Marshal(result)
	if err != nil || t.Language == Python {
		return str(string(doc)), err
	}
	d := json.NewDecoder(bytes.NewReader(doc))
	d.UseNumber()
	var v any
	err = d.Decode(&v)
	return value(v), err
}

// plain returns a value of DynamoDB as encoding/json encodes it. Null is nil.
func plain(v types.AttributeValue) any {
	switch v := v.(type) {
	case *types.AttributeValueMemberS:
		return v.Value
	case *types.AttributeValueMemberN:
		return json.Number(v.Value)
	case *types.AttributeValueMemberBOOL:
		return v.Value
	case *types.AttributeValueMemberB:
		return v.Value
	case *types.AttributeValueMemberSS:
		return v.Value
	case *types.AttributeValueMemberM:
		m := make(map[string]any, len(v.Value))
		for name, e := range v.Value {
			m[name] = plain(e)
		}
		return m
	case *types.AttributeValueMemberL:
		l := make([]any, len(v.Value))
		for i, e := range v.Value {
			l[i] = plain(e)
		}
		return l
	}
	return nil
}

// value is the inverse of plain for what encoding/json decodes.
func value(v any) types.AttributeValue {
	switch v := v.(type) {
	case string:
		return str(v)
	case json.Number:
		return &types.AttributeValueMemberN{Value: v.String()}
	case bool:
		return &types.AttributeValueMemberBOOL{Value: v}
	case map[string]any:
		m := make(attributes, len(v))
		for name, e := range v {
			m[name] = value(e)
		}
		return &types.AttributeValueMemberM{Value: m}
	case []any:
		l := make([]types.AttributeValue, len(v))
		for i, e := range v {
			l[i] = value(e)
		}
		return &types.AttributeValueMemberL{Value: l}
	}
	return &types.AttributeValueMemberNULL{Value: true}
}
