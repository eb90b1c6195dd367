package emf_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/lambdalock/lambdalock/internal/robustness/expect"
)

// point is a value that CloudWatch got.
type point struct {
	metric string // see metricName
	at     time.Time
	value  float64
}

// metricName names a metric with its dimensions, in the order of their names.
func metricName(namespace, name string, dimensions ...string) string {
	slices.Sort(dimensions)
	return namespace + " " + name + " " + strings.Join(dimensions, " ")
}

// template is what the construct makes: alarms and metric filters. Their JSON
// is that of CloudFormation, after the parameters have been filled in.
type template struct {
	alarms  map[string]alarm
	filters []filter
}

type alarm struct {
	metric
	Statistic         string
	Period            int
	Metrics           []query
	Threshold         float64
	EvaluationPeriods int
	OKActions         []string
	AlarmActions      []string
	AlarmDescription  string
}

type metric struct {
	Namespace, MetricName string
	Dimensions            []struct{ Name, Value string }
}

func (m metric) name() string {
	var dimensions []string
	for _, d := range m.Dimensions {
		dimensions = append(dimensions, d.Name+"="+d.Value)
	}
	return metricName(m.Namespace, m.MetricName, dimensions...)
}

type query struct {
	ID         string
	Expression string
	ReturnData bool
	MetricStat struct {
		Metric metric
		Period int
		Stat   string
	}
}

type filter struct {
	FilterPattern         string
	MetricTransformations []struct{ MetricNamespace, MetricName, MetricValue string }
}

// readTemplate returns the template in a file, with parameters.
func readTemplate(t *testing.T, file string, parameters map[string]string) template {
	t.Helper()
	text := expect.Value(os.ReadFile(file))(t)
	var document struct {
		Resources map[string]struct {
			Type       string
			Properties any
		}
	}
	expect.Must(t, json.Unmarshal(text, &document))
	all := template{alarms: map[string]alarm{}}
	for id, r := range document.Resources {
		properties, err := json.Marshal(filledIn(r.Properties, parameters))
		if err != nil {
			t.Fatal(err)
		}
		var a alarm
		var f filter
		switch r.Type {
		case "AWS::CloudWatch::Alarm":
			err = json.Unmarshal(properties, &a)
			all.alarms[id] = a
		case "AWS::Logs::MetricFilter":
			err = json.Unmarshal(properties, &f)
			all.filters = append(all.filters, f)
		}
		if err != nil {
			t.Fatalf("%s: %v", id, err)
		}
	}
	return all
}

// filledIn returns a property with the values of Ref and Fn::Join.
func filledIn(v any, parameters map[string]string) any {
	switch v := v.(type) {
	case []any:
		for i := range v {
			v[i] = filledIn(v[i], parameters)
		}
	case map[string]any:
		if name, ok := v["Ref"].(string); ok {
			return parameters[name]
		}
		for key := range v {
			v[key] = filledIn(v[key], parameters)
		}
		if join, ok := v["Fn::Join"].([]any); ok {
			text := ""
			for _, part := range join[1].([]any) {
				text += part.(string)
			}
			return text
		}
	}
	return v
}

// count returns what the filters make of a log line. All patterns are phrases.
func (t template) count(line string, at time.Time) (points []point) {
	for _, f := range t.filters {
		phrase, err := strconv.Unquote(f.FilterPattern)
		if err != nil {
			panic(err)
		}
		if strings.Contains(line, phrase) {
			m := f.MetricTransformations[0]
			points = append(points, point{metricName(m.MetricNamespace, m.MetricName), at, 1})
		}
	}
	return points
}

// sounding returns the alarms that sound at some time.
func (t template) sounding(points []point) (names []string, err error) {
	for name, a := range t.alarms {
		sounds, problem := a.sounds(points)
		if sounds {
			names = append(names, name)
		}
		err = errors.Join(err, problem)
	}
	slices.Sort(names)
	return names, err
}

// sounds reports whether enough periods in a row reach the threshold. All
// alarms treat missing data as not breaching.
func (a alarm) sounds(points []point) (bool, error) {
	first := slices.MinFunc(points, func(a, b point) int { return a.at.Compare(b.at) }).at
	last := slices.MaxFunc(points, func(a, b point) int { return a.at.Compare(b.at) }).at
	length := time.Duration(a.period()) * time.Second
	row := 0
	for from := first.Truncate(length); !from.After(last); from = from.Add(length) {
		value, err := a.value(points, from)
		if err != nil {
			return false, err
		}
		if row++; value < a.Threshold {
			row = 0
		}
		if row == a.EvaluationPeriods {
			return true, nil
		}
	}
	return false, nil
}

func (a alarm) period() int {
	if len(a.Metrics) == 0 {
		return a.Period
	}
	for _, q := range a.Metrics {
		if q.MetricStat.Period != 0 {
			return q.MetricStat.Period
		}
	}
	return 0
}

// value returns the value of the period that begins at from.
func (a alarm) value(points []point, from time.Time) (float64, error) {
	if len(a.Metrics) == 0 {
		return statistic(points, a.name(), a.Statistic, from, a.Period), nil
	}
	values, expression := map[string]float64{}, ""
	for _, q := range a.Metrics {
		if q.ReturnData {
			expression = q.Expression
			continue
		}
		values[q.ID] = statistic(points, q.MetricStat.Metric.name(), q.MetricStat.Stat, from, q.MetricStat.Period)
	}
	tree, err := parser.ParseExpr(expression) // metric math is also an expression of Go
	if err != nil {
		return 0, err
	}
	return evaluate(tree, values)
}

func statistic(points []point, metric, name string, from time.Time, period int) (value float64) {
	to := from.Add(time.Duration(period) * time.Second)
	for _, p := range points {
		if p.metric != metric || p.at.Before(from) || !p.at.Before(to) {
			continue
		}
		switch name {
		case "Sum":
			value += p.value
		case "SampleCount":
			value++
		case "Maximum":
			value = max(value, p.value)
		default:
			panic("statistic " + name)
		}
	}
	return value
}

// evaluate returns the value of metric math, in which missing values are zero.
func evaluate(e ast.Expr, values map[string]float64) (float64, error) {
	switch e := e.(type) {
	case *ast.ParenExpr:
		return evaluate(e.X, values)
	case *ast.BasicLit:
		return strconv.ParseFloat(e.Value, 64)
	case *ast.Ident:
		if v, ok := values[e.Name]; ok {
			return v, nil
		}
	case *ast.BinaryExpr:
		x, err := evaluate(e.X, values)
		y, err2 := evaluate(e.Y, values)
		return operate(e.Op, x, y), errors.Join(err, err2)
	case *ast.CallExpr:
		switch name := e.Fun.(*ast.Ident).Name; {
		case name == "FILL" && len(e.Args) == 2:
			return evaluate(e.Args[0], values)
		case name == "IF" && len(e.Args) == 3:
			condition, err := evaluate(e.Args[0], values)
			if err != nil {
				return 0, err
			}
			if condition != 0 {
				return evaluate(e.Args[1], values)
			}
			return evaluate(e.Args[2], values)
		}
	}
	return 0, fmt.Errorf("metric math %T %v", e, e)
}

func operate(op token.Token, x, y float64) float64 {
	switch op {
	case token.ADD:
		return x + y
	case token.MUL:
		return x * y
	case token.QUO:
		return x / y
	case token.LSS:
		if x < y {
			return 1
		}
		return 0
	}
	panic("operator " + op.String())
}
