package fakedynamo

import (
	"bytes"
	"encoding/json"
	"reflect"
	"strings"
	"testing"
)

func TestMalformedRequests(t *testing.T) {
	t.Parallel()
	cases := []struct{ body, want string }{
		{``, "Unexpected end of input, where an object was expected"},
		{`[]`, "Unexpected '[' at byte 0, where an object was expected"},
		{`{"TableName" "x"}`, "where a colon was expected"},
		{`{"TableName":"x" "Key":{}}`, "where a comma was expected"},
		{`{"TableName":"x",}`, "where a string was expected"},
		{`{"TableName":5}`, "Unexpected '5' at byte 13, where a string was expected"},
		{`{"TableName":"x`, "Unexpected end of input in a string"},
		{`{"TableName":"\q"}`, "reading a string"},
		{"{\"TableName\":\"\n\"}", "reading a string"},
		{`{"TableName":"x"} x`, "where the end was expected"},
		{"{\"TableName\":\"x\"}\x00", "where the end was expected"},
		{`{"Key":{"id":"x"}}`, "where an object was expected"},
		{`{"Key":{"id":{"S":5}}}`, "where a string was expected"},
		{`{"Key":{"id":{"BOOL":"x"}}}`, "where true or false was expected"},
		{`{"Key":{"id":{"L":{}}}}`, "where an array was expected"},
		{`{"Key":{"id":{"L":[{} {}]}}}`, "where a comma was expected"},
		{`{"Key":{"id":{"NS":["1"]}}}`, `"NS" of an attribute value`},
		{`{"AttributeUpdates":{}}`, `"AttributeUpdates"`},
	}
	for _, c := range cases {
		_, err := decodeUpdateItem([]byte(c.body))
		if err == nil || err.kind != coralType+"SerializationException" || !strings.Contains(err.message, c.want) {
			t.Errorf("%s: %+v, want %q", c.body, err, c.want)
		}
	}
}

func TestNesting(t *testing.T) {
	t.Parallel()
	for _, levels := range []int{maxNesting, maxNesting + 1, 100_000} {
		v := strings.Repeat(`{"L":[`, levels) + `{"N":"1"}` + strings.Repeat(`]}`, levels)
		s := newServer(t)
		status, answer := updateItem(t, s, `"UpdateExpression":"SET a = :v","ExpressionAttributeValues":{":v":`+v+`}`)
		if levels == maxNesting && status != 200 || levels > maxNesting && answer["message"] != string(errNesting) {
			t.Errorf("%d levels: %d %v", levels, status, answer)
		}
	}
}

// FuzzRequest compares the reader with encoding/json: what the reader accepts
// is what encoding/json makes of the same bytes.
func FuzzRequest(f *testing.F) {
	for _, seed := range []string{
		`{"TableName":"locks","Key":{"id":{"S":"k"}},"UpdateExpression":"SET a = :v","ReturnValues":"NONE"}`,
		`{"ExpressionAttributeNames":{"#a":"\u00e9\n","#b":null},"ConditionExpression":"é","ReturnValuesOnConditionCheckFailure":null}`,
		` { "ExpressionAttributeValues" : { ":v" : { "M" : { "x" : { "L" : [ {"BOOL":true} , {"NULL":false}, null ] } } }, ":w":{"N":"1","B":"YQ=="} } } `,
		"{\"TableName\":\"\xff\"}", `{"Key":{"a":{"S":null,"M":{},"L":[]}}}`, `{"Key":null}`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		got, refused := decodeUpdateItem(body)
		if refused != nil || repeats(json.NewDecoder(bytes.NewReader(body))) {
			return // JSON leaves open what a repeated member means
		}
		want := new(updateItemRequest)
		d := json.NewDecoder(bytes.NewReader(body))
		if err := d.Decode(want); err != nil {
			t.Fatalf("accepted %q, which is not JSON: %v", body, err)
		}
		for name, v := range want.ExpressionAttributeNames {
			if _, ok := got.ExpressionAttributeNames[name]; !ok && v == "" {
				delete(want.ExpressionAttributeNames, name) // null counts as absent
			}
		}
		if !reflect.DeepEqual(got, want) {
			t.Errorf("%q gives %s, want %s", body, marshal(t, got), marshal(t, want))
		}
	})
}

// repeats reports whether a member is repeated within the next JSON value.
func repeats(d *json.Decoder) bool {
	start, _ := d.Token()
	if start != json.Delim('{') && start != json.Delim('[') {
		return false
	}
	seen := make(map[any]bool)
	found := false
	for d.More() {
		if start == json.Delim('{') {
			name, err := d.Token()
			if err != nil {
				return false
			}
			found = found || seen[name]
			seen[name] = true
		}
		found = repeats(d) || found
	}
	_, _ = d.Token() // the end of the object or array
	return found
}
