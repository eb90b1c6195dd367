package emf_test

import (
	_ "embed"
	"encoding/json"
	"math"
	"regexp"
	"testing"

	"github.com/lambdalock/lambdalock/internal/robustness/expect"
)

// schemaText is the JSON schema of the embedded metric format, without titles
// and examples.
// https://docs.aws.amazon.com/AmazonCloudWatch/latest/monitoring/CloudWatch_Embedded_Metric_Format_Specification.html
//
//go:embed testdata/schema.json
var schemaText []byte

// schema has the keywords that the schema of the format uses.
type schema struct {
	Type                 string
	Required             []string
	Properties           map[string]*schema
	Items                *schema
	Pattern              string
	MinItems, MaxItems   *int
	MinLength, MaxLength *int
}

func checkSchema(t *testing.T, document string) {
	t.Helper()
	var s schema
	expect.Must(t, json.Unmarshal(schemaText, &s))
	var v any
	if err := json.Unmarshal([]byte(document), &v); err != nil {
		t.Fatalf("%v: %s", err, document)
	}
	s.check(t, "document", v)
}

func (s *schema) check(t *testing.T, place string, v any) {
	t.Helper()
	kind, size := "", 0
	switch v := v.(type) {
	case map[string]any:
		kind = "object"
		for _, name := range s.Required {
			if _, ok := v[name]; !ok {
				t.Errorf("%s has no %s", place, name)
			}
		}
		for name, p := range s.Properties {
			if member, ok := v[name]; ok {
				p.check(t, place+"."+name, member)
			}
		}
	case []any:
		kind, size = "array", len(v)
		for _, item := range v {
			s.Items.check(t, place+"[]", item)
		}
		within(t, place, size, s.MinItems, s.MaxItems)
	case string:
		kind, size = "string", len(v)
		if !regexp.MustCompile(s.Pattern).MatchString(v) {
			t.Errorf("%s is %q, want %s", place, v, s.Pattern)
		}
		within(t, place, size, s.MinLength, s.MaxLength)
	case float64:
		if v == math.Trunc(v) {
			kind = "integer"
		}
	}
	if kind != s.Type {
		t.Errorf("%s is %v, want an %s", place, v, s.Type)
	}
}

func within(t *testing.T, place string, size int, least, most *int) {
	t.Helper()
	if least != nil && size < *least || most != nil && size > *most {
		t.Errorf("%s has %d elements or bytes", place, size)
	}
}
