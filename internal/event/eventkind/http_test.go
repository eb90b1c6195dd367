package eventkind

import (
	"reflect"
	"testing"

	"github.com/aws/aws-lambda-go/events"
)

type (
	rest           = events.APIGatewayProxyRequest
	defined        rest
	again          defined
	embedding      struct{ rest }
	pointing       struct{ *events.APIGatewayProxyRequest }
	deep           struct{ embedding }
	generic[T any] struct {
		rest
		Parsed T
	}
	nearest struct {
		deep // has a request two levels down
		events.ALBTargetGroupRequest
	}
	selfish struct{ *selfish }
	named   struct {
		rest `json:"request"`
	}
	inline struct {
		rest `json:",omitempty"`
	}
	field struct{ Request rest }
	alike struct{ Body string }
)

// TestRequestIn shows in which types of users a request is found, and that the
// one that is found has the values of the event.
func TestRequestIn(t *testing.T) {
	t.Parallel()
	r := rest{Path: "/orders"}
	p := &r
	for name, c := range map[string]struct {
		event any
		want  any // nil: none
	}{
		"itself":                {r, r},
		"pointer":               {p, r},
		"pointer to a pointer":  {&p, r},
		"defined":               {defined(r), r},
		"defined twice":         {again(r), r},
		"pointer to defined":    {new(defined), rest{}},
		"embedded":              {embedding{r}, r},
		"embedded pointer":      {pointing{&r}, r},
		"pointer to embedding":  {&embedding{r}, r},
		"embedded twice":        {deep{embedding{r}}, r},
		"generic":               {generic[int]{rest: r}, r},
		"the nearest":           {nearest{ALBTargetGroupRequest: events.ALBTargetGroupRequest{Path: "/near"}}, events.ALBTargetGroupRequest{Path: "/near"}},
		"nil pointer":           {(*rest)(nil), nil},
		"embedded nil pointer":  {pointing{}, nil},
		"nil":                   {nil, nil},
		"embeds itself":         {selfish{}, nil},
		"embedded, options":     {inline{r}, r},
		"embedded under a name": {named{r}, nil},
		"in a field":            {field{r}, nil},
		"alike":                 {alike{"b"}, nil},
		"another event":         {events.SQSEvent{}, nil},
		"text":                  {"text", nil},
		"map":                   {map[string]any{"httpMethod": "GET"}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, ok := RequestIn(c.event)
			if ok != (c.want != nil) || !reflect.DeepEqual(got, c.want) {
				t.Errorf("%T %+v, %t; want %+v", got, got, ok, c.want)
			}
		})
	}
}
