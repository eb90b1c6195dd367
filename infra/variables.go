package infra

import (
	"fmt"

	"github.com/aws/aws-cdk-go/awscdk/v2/awslambda"
	"github.com/aws/jsii-runtime-go"
)

// What the decorator reads.
const (
	tableVariable     = "LOCK_TABLE_NAME"
	namespaceVariable = "LOCK_NAMESPACE"
)

// variables are the environment variables of a connected function, as JSON.
type variables struct {
	table, namespace         string
	wantTable, wantNamespace string
}

// setVariables panics if one is set to something else.
func (c *connection) setVariables() {
	v := c.noteVariables()
	if v.table != "" && v.table != v.wantTable && !c.isNameOfTable(v.table) {
		panic(fmt.Sprintf("lambdalock: function %s has the environment variable %s already, with the value %s: "+
			"remove it, because Connect sets it to the name of %s",
			c.path, tableVariable, v.table, c.table.path))
	}
	if v.namespace != "" && c.namespace != nil && v.namespace != v.wantNamespace {
		panic(fmt.Sprintf("lambdalock: function %s has the environment variable %s already, with the value %s: "+
			"remove it, and give that namespace in ConnectOptions.Namespace",
			c.path, namespaceVariable, v.namespace))
	}
	c.fn.AddEnvironment(jsii.String(tableVariable), c.table.table.TableName(), nil)
	if c.namespace != nil {
		c.fn.AddEnvironment(jsii.String(namespaceVariable), c.namespace, nil)
	}
}

// isNameOfTable: the table may be meant by its physical name.
func (c *connection) isNameOfTable(value string) bool {
	return c.table.name != nil && value == encoded(*c.table.name)
}

// noteVariables resolves both sides at the same time, because a reference to
// another stack looks different after a synthesis.
func (c *connection) noteVariables() variables {
	stack := c.fn.Stack()
	v := variables{wantTable: encoded(stack.Resolve(c.table.table.TableName()))}
	if c.namespace != nil {
		v.wantNamespace = encoded(*c.namespace)
	}
	f, ok := c.fn.Node().DefaultChild().(awslambda.CfnFunction)
	if !ok {
		return v
	}
	environment, _ := resolve(stack, f.Environment()).(map[string]any)
	set, _ := environment["variables"].(map[string]any)
	if value, ok := set[tableVariable]; ok {
		v.table = encoded(value)
	}
	if value, ok := set[namespaceVariable]; ok {
		v.namespace = encoded(value)
	}
	return v
}

// checkVariables sees what was set after Connect.
func (c *connection) checkVariables() {
	f := c.table.survey.functions[c.resource]
	if f == nil {
		return
	}
	v := f.variables
	const says = "function %s has the environment variable %s with the value %s, which was changed after Connect: remove what sets it"
	if v.table != "" && v.table != v.wantTable && !c.isNameOfTable(v.table) {
		c.fail(says+", because the function may lock in %s only", c.path, tableVariable, v.table, c.table.path)
	}
	if v.namespace != "" && c.namespace != nil && v.namespace != v.wantNamespace {
		c.fail(says+", and give the namespace in ConnectOptions.Namespace", c.path, namespaceVariable, v.namespace)
	}
}
