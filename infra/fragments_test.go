package infra_test

import (
	"encoding/json"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/aws/aws-cdk-go/awscdk/v2/assertions"
	"github.com/aws/aws-cdk-go/awscdk/v2/cloudformationinclude"
	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	ctyjson "github.com/zclconf/go-cty/cty/json"
	"go.yaml.in/yaml/v3"

	"github.com/lambdalock/lambdalock/infra"
)

// fragment returns a file of this folder that people copy.
func fragment(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// construct returns what the fragments must contain: the default table, and the
// statement of a function that is connected with the namespace "orders".
func construct(t *testing.T) (table, statement object) {
	t.Helper()
	stack := newStack()
	infra.NewLockTable(stack, s("Locks"), nil).Connect(newFunction(stack, "Fn", nil), &infra.ConnectOptions{Namespace: s("orders")})
	for _, r := range *assertions.Template_FromStack(stack, nil).FindResources(s("AWS::DynamoDB::Table"), nil) {
		table = *r
	}
	return table, statements(t, stack, "dynamodb:")[0]
}

// alarmParameters returns the names of the parameters of the template of
// alarms.
func alarmParameters(t *testing.T) []string {
	t.Helper()
	var template struct{ Parameters object }
	if err := json.Unmarshal([]byte(fragment(t, "alarms/logs.json")), &template); err != nil {
		t.Fatal(err)
	}
	return slices.Sorted(maps.Keys(template.Parameters))
}

// checkAlarms compares the stack of alarms in a template.
func checkAlarms(t *testing.T, resources object) {
	t.Helper()
	equal(t, "template of alarms", at(resources, "LockAlarms", "Properties", "TemplateURL"), `"alarms/logs.json"`)
	given, _ := at(resources, "LockAlarms", "Properties", "Parameters").(object)
	if names := slices.Sorted(maps.Keys(given)); !slices.Equal(names, alarmParameters(t)) {
		t.Errorf("the alarms get %v, want %v", names, alarmParameters(t))
	}
	equal(t, "table of alarms", given["Table"], `{"Ref": "LockTable"}`)
}

// checkSource checks that the source of the function causes none of the
// construct's warnings.
func checkSource(t *testing.T, resources object) {
	t.Helper()
	number := func(path ...string) float64 {
		n, _ := at(resources, path...).(int)
		return float64(n)
	}
	if visibility, timeout := number("Orders", "Properties", "VisibilityTimeout"), number("Handler", "Properties", "Timeout"); timeout == 0 || visibility < 6*timeout {
		t.Errorf("a visibility timeout of %g s and a timeout of %g s", visibility, timeout)
	}
	if n := number("Orders", "Properties", "RedrivePolicy", "maxReceiveCount"); n < 5 {
		t.Errorf("%g receives", n)
	}
	equal(t, "dead-letter queue", at(resources, "Orders", "Properties", "RedrivePolicy", "deadLetterTargetArn"), `{"Fn::GetAtt": ["FailedOrders", "Arn"]}`)
	equal(t, "source", at(resources, "Handler", "Properties", "Events", "Order", "Properties"),
		`{"Queue": {"Fn::GetAtt": ["Orders", "Arn"]}, "FunctionResponseTypes": ["ReportBatchItemFailures"]}`)
}

// TestFragmentsAreTheConstruct: the fragments for CloudFormation, SAM and
// Terraform make what NewLockTable makes. Only the logical id of the table is
// different.
func TestFragmentsAreTheConstruct(t *testing.T) {
	table, statement := construct(t)
	statement["Resource"] = object{"Fn::GetAtt": []any{"LockTable", "Arn"}}

	t.Run("CloudFormation", func(t *testing.T) {
		r := template(t, fragment(t, "table.yaml"))
		equal(t, "table", r["LockTable"], encoded(table))
		equal(t, "policy", at(r, "LockPolicy", "Properties", "PolicyDocument", "Statement"), encoded([]any{statement}))
		checkAlarms(t, r)
	})
	t.Run("included in an app", func(t *testing.T) {
		stack := newStack()
		fn := newFunction(stack, "Fn", nil)
		locks := cloudformationinclude.NewCfnInclude(stack, s("Locks"), &cloudformationinclude.CfnIncludeProps{
			TemplateFile:     s("table.yaml"),
			LoadNestedStacks: &map[string]*cloudformationinclude.CfnIncludeProps{"LockAlarms": {TemplateFile: s("alarms/logs.json")}},
			Parameters:       &map[string]any{"HandlerRole": fn.Role().RoleName(), "HandlerLogGroup": "/aws/lambda/orders", "Alerts": "arn:aws:sns:eu-central-1:123456789012:alerts"},
		})
		fn.AddEnvironment(s("LOCK_TABLE_NAME"), locks.GetResource(s("LockTable")).Ref(), nil)
		r := template(t, encoded(assertions.Template_FromStack(stack, nil).ToJSON()))
		equal(t, "table", r["LockTable"], encoded(table))
		// The CDK keeps the short form of GetAtt.
		equal(t, "policy", statements(t, stack, "dynamodb:")[0], strings.Replace(encoded(statement), `["LockTable","Arn"]`, `"LockTable.Arn"`, 1))
		inside := assertions.Template_FromStack(locks.GetNestedStack(s("LockAlarms")).Stack, nil)
		if alarms := inside.FindResources(s("AWS::CloudWatch::Alarm"), nil); len(*alarms) == 0 {
			t.Error("no alarm is included")
		}
	})
	t.Run("SAM", func(t *testing.T) {
		r := template(t, fragment(t, "table-sam.yaml"))
		equal(t, "table", r["LockTable"], encoded(table))
		policies, _ := at(r, "Handler", "Properties", "Policies").([]any)
		if len(policies) != 1 {
			t.Fatalf("%d policies, want 1", len(policies))
		}
		equal(t, "policy", policies[0].(object)["Statement"], encoded([]any{statement}))
		equal(t, "environment", at(r, "Handler", "Properties", "Environment"), `{"Variables": {"LOCK_TABLE_NAME": {"Ref": "LockTable"}, "LOCK_NAMESPACE": "orders"}}`)
		checkAlarms(t, r)
		checkSource(t, r)
	})
	t.Run("Terraform", func(t *testing.T) {
		compareTerraform(t, fragment(t, "table.tf"), table, statement)
	})
}

// template returns the resources of a CloudFormation template.
func template(t *testing.T, text string) object {
	t.Helper()
	var doc yaml.Node
	if err := yaml.Unmarshal([]byte(text), &doc); err != nil {
		t.Fatal(err)
	}
	expandTags(&doc)
	var v object
	if err := doc.Decode(&v); err != nil {
		t.Fatal(err)
	}
	r, _ := v["Resources"].(object)
	return r
}

// expandTags replaces the short forms !Ref and !GetAtt by the long ones.
func expandTags(n *yaml.Node) {
	for _, c := range n.Content {
		expandTags(c)
	}
	var value any
	switch n.Tag {
	case "!Ref":
		value = object{"Ref": n.Value}
	case "!GetAtt":
		value = object{"Fn::GetAtt": strings.SplitN(n.Value, ".", 2)}
	default:
		return
	}
	if err := n.Encode(value); err != nil {
		panic(err)
	}
}

func compareTerraform(t *testing.T, text string, table, statement object) {
	t.Helper()
	file, problems := hclsyntax.ParseConfig([]byte(text), "table.tf", hcl.InitialPos)
	if problems.HasErrors() {
		t.Fatal(problems)
	}
	got := terraform(t, file.Body.(*hclsyntax.Body), text)
	p := table["Properties"].(object)
	key := p["AttributeDefinitions"].([]any)[0].(object)
	ttl := p["TimeToLiveSpecification"].(object)
	equal(t, "table", got["resource aws_dynamodb_table locks"], encoded(object{
		"name":                        "orders-locks",
		"billing_mode":                p["BillingMode"],
		"hash_key":                    p["KeySchema"].([]any)[0].(object)["AttributeName"],
		"attribute":                   object{"name": key["AttributeName"], "type": key["AttributeType"]},
		"deletion_protection_enabled": p["DeletionProtectionEnabled"],
		"ttl":                         object{"attribute_name": ttl["AttributeName"], "enabled": ttl["Enabled"]},
		"lifecycle":                   object{"prevent_destroy": table["DeletionPolicy"] == "Retain"},
	}))
	equal(t, "statement", at(got, "data aws_iam_policy_document lock", "statement"), encoded(object{
		"effect":    statement["Effect"],
		"actions":   []any{statement["Action"]},
		"resources": "[aws_dynamodb_table.locks.arn]",
		"condition": conditions(statement),
	}))
	equal(t, "policy", at(got, "resource aws_iam_role_policy lock", "policy"), `"data.aws_iam_policy_document.lock.json"`)
	equal(t, "alarms", at(got, "resource aws_cloudformation_stack lock_alarms", "template_body"), `"file(\"alarms/logs.json\")"`)
	parameters := encoded(at(got, "resource aws_cloudformation_stack lock_alarms", "parameters"))
	for _, name := range alarmParameters(t) {
		if !strings.Contains(parameters, name+" ") {
			t.Errorf("the alarms do not get %s in %s", name, parameters)
		}
	}
}

// conditions returns the conditions of a statement in Terraform's form.
func conditions(statement object) []any {
	var list []any
	all, _ := statement["Condition"].(object)
	for _, operator := range slices.Sorted(maps.Keys(all)) {
		for key, value := range all[operator].(object) {
			list = append(list, object{"test": operator, "variable": key, "values": []any{value}})
		}
	}
	return list
}

// terraform returns a body as an object. Blocks are under their type and
// labels, in a list if there are several. Constants are values, other
// expressions their text.
func terraform(t *testing.T, body *hclsyntax.Body, text string) object {
	t.Helper()
	o := object{}
	for name, a := range body.Attributes {
		value, problems := a.Expr.Value(nil)
		if problems.HasErrors() {
			o[name] = string(a.Expr.Range().SliceBytes([]byte(text)))
			continue
		}
		b, err := ctyjson.Marshal(value, value.Type())
		if err != nil {
			t.Fatal(err)
		}
		o[name] = json.RawMessage(b)
	}
	for _, b := range body.Blocks {
		name := strings.Join(append([]string{b.Type}, b.Labels...), " ")
		switch value := terraform(t, b.Body, text); others := o[name].(type) {
		case nil:
			o[name] = value
		case []any:
			o[name] = append(others, value)
		default:
			o[name] = []any{others, value}
		}
	}
	return o
}

// TestFragmentsPassLint runs cfn-lint, which make infra installs.
func TestFragmentsPassLint(t *testing.T) {
	lint, err := filepath.Abs(".venv/bin/cfn-lint")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(lint); err != nil {
		if os.Getenv("LAMBDALOCK_INTEGRATION") == "required" {
			t.Fatal(err)
		}
		t.Skip("skipped: cfn-lint is not installed; make infra installs it:", err)
	}
	for _, name := range []string{"table.yaml", "table-sam.yaml"} {
		t.Run(name, func(t *testing.T) {
			// W3002 says that the package command must upload what is a local file.
			if out, err := exec.Command(lint, "--ignore-checks", "W3002", "--template", name).CombinedOutput(); err != nil {
				t.Errorf("%v\n%s", err, out)
			}
		})
	}
	for _, name := range []string{"logs", "emf"} {
		t.Run(name, func(t *testing.T) {
			if out, err := exec.Command(lint, "alarms/"+name+".json").CombinedOutput(); err != nil {
				t.Errorf("%v\n%s", err, out)
			}
		})
	}
}
