package infra

import (
	"fmt"

	"github.com/aws/jsii-runtime-go"
)

// The environment variables that middleware.WithLock reads.
const (
	tableVariable     = "LOCK_TABLE_NAME"
	namespaceVariable = "LOCK_NAMESPACE"
)

// variables are the environment variables of a connected function, as they are
// set and as Connect wants them. Values are JSON; an unset one is empty.
type variables struct {
	table, namespace         string
	wantTable, wantNamespace string
}

// setVariables sets the variables. It panics if one has a different value.
func (c *connection) setVariables() {
	v := c.readVariables()
	if c.wrongTable(v) {
		panic(fmt.Sprintf("lambdalock: function %s already has the environment variable %s with the value %s: "+
			"remove it, because Connect sets it to the name of %s",
			c.path, tableVariable, v.table, c.table.path))
	}
	if c.wrongNamespace(v) {
		panic(fmt.Sprintf("lambdalock: function %s already has the environment variable %s with the value %s: "+
			"remove it, and set ConnectOptions.Namespace instead",
			c.path, namespaceVariable, v.namespace))
	}
	c.made.AddEnvironment(jsii.String(tableVariable), c.table.table.TableName(), nil)
	c.made.AddEnvironment(jsii.String(namespaceVariable), c.namespace, nil)
}

// checkVariables reports variables that were changed after Connect, and those
// that only the owner of an imported function can set.
func (c *connection) checkVariables() {
	if c.made == nil {
		c.checkImported()
		return
	}
	f := c.table.survey.functions[c.resourcePath]
	if f == nil {
		return
	}
	v := f.variables
	const changed = "function %s has the environment variable %s with the value %s, which was changed after Connect: remove what sets it"
	if c.wrongTable(v) {
		c.fail(changed+", because the function may lock only in %s", c.path, tableVariable, v.table, c.table.path)
	}
	if c.wrongNamespace(v) {
		c.fail(changed+", and set ConnectOptions.Namespace instead", c.path, namespaceVariable, v.namespace)
	}
}

// checkImported says which variables an imported function needs. Its namespace
// is its name unless another one is given.
func (c *connection) checkImported() {
	want := fmt.Sprintf("%s to the name of %s", tableVariable, c.table.path)
	if *c.namespace != *c.fn.FunctionName() {
		want += fmt.Sprintf(", and %s to %s", namespaceVariable, joined(c.fn.Stack().Resolve(c.namespace)))
	}
	c.warn(WarnVariables, "it is imported, so its environment variables are set where it is managed: set %s; acknowledge this warning when that is done", want)
}

// wrongTable reports whether LOCK_TABLE_NAME is set to a different table. The
// table may also be given by its physical name.
func (c *connection) wrongTable(v variables) bool {
	isName := c.table.name != nil && v.table == encoded(*c.table.name)
	return v.table != "" && v.table != v.wantTable && !isName
}

// wrongNamespace reports whether LOCK_NAMESPACE is set to a different
// namespace.
func (c *connection) wrongNamespace(v variables) bool {
	return v.namespace != "" && v.namespace != v.wantNamespace
}

// readVariables resolves the set and the wanted values at the same time,
// because a reference to another stack looks different after a synthesis.
func (c *connection) readVariables() variables {
	stack := c.fn.Stack()
	v := variables{wantTable: encoded(stack.Resolve(c.table.table.TableName())), wantNamespace: encoded(stack.Resolve(c.namespace))}
	// Later versions of the CDK return what Environment returns as a structure,
	// which loses the variables, because AddEnvironment adds them to a lazy value.
	environment, _ := resolve(stack, (*c.resource.CfnProperties())["environment"]).(map[string]any)
	set, _ := environment["variables"].(map[string]any)
	if value, ok := set[tableVariable]; ok {
		v.table = encoded(value)
	}
	if value, ok := set[namespaceVariable]; ok {
		v.namespace = encoded(value)
	}
	return v
}
