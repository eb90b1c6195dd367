package fakedynamo

// condition is a parsed condition expression.
type condition struct {
	root node
	uses uses
}

// node is a part of a condition.
type node interface {
	// check finds the errors that depend on the placeholders, in the order in
	// which the expression is written.
	check(env) error
	// eval tells whether an item, nil if there is none, fulfils the condition.
	eval(env, item) bool
}

type (
	and     struct{ left, right node }
	or      struct{ left, right node }
	not     struct{ inner node }
	compare struct {
		operator    string
		left, right operand
	}
	exists struct {
		function string
		args     []operand
	}
	// group is a condition in parentheses, told apart so that redundant ones
	// are noticed.
	group struct{ node }
)

func (n and) eval(e env, it item) bool { return n.left.eval(e, it) && n.right.eval(e, it) }
func (n or) eval(e env, it item) bool  { return n.left.eval(e, it) || n.right.eval(e, it) }
func (n not) eval(e env, it item) bool { return !n.inner.eval(e, it) }
func (n not) check(e env) error        { return n.inner.check(e) }
func (n and) check(e env) error        { return checkBoth(e, n.left, n.right) }
func (n or) check(e env) error         { return checkBoth(e, n.left, n.right) }

func checkBoth(e env, left, right node) error {
	if err := left.check(e); err != nil {
		return err
	}
	return right.check(e)
}

// eval compares as the service does: an attribute that is missing differs from
// everything, and an order exists only between values of the same type.
func (n compare) eval(e env, it item) bool {
	left, right := n.left.eval(e, it), n.right.eval(e, it)
	switch n.operator {
	case "=":
		return left.equal(right)
	case "<>":
		return !left.equal(right)
	}
	if left == nil || right == nil || left.kind != right.kind || !ordered(left.kind) {
		return false
	}
	order := left.compare(right)
	switch n.operator {
	case "<":
		return order < 0
	case "<=":
		return order <= 0
	case ">":
		return order > 0
	}
	return order >= 0
}

func (n compare) check(e env) error {
	for _, o := range []operand{n.left, n.right} {
		if err := o.defined(e); err != nil {
			return err
		}
	}
	if n.left.kind == operandPath && n.right.kind == operandPath && e.same(n.left.path, n.right.path, false) {
		return refusalf("The first operand must be distinct from the remaining operands for this operator or function; operator: %s, first operand: %s", n.operator, e.show(n.left.path))
	}
	if n.operator == "=" || n.operator == "<>" {
		return nil
	}
	for _, o := range []operand{n.left, n.right} {
		if v := e.values[o.value]; v != nil && !ordered(v.kind) {
			return refusalf("Incorrect operand type for operator or function; operator or function: %s, operand type: %s", n.operator, v.kind)
		}
	}
	return nil
}

// defined checks that the placeholders of an operand are defined.
func (o operand) defined(e env) error {
	if o.kind == operandValue {
		return e.definedValues([]string{o.value})
	}
	return e.definedNames(o.path)
}

func (n exists) eval(e env, it item) bool {
	return (e.lookup(it, n.args[0].path) != nil) == (n.function == "attribute_exists")
}

func (n exists) check(e env) error {
	for _, o := range n.args {
		if err := o.defined(e); err != nil {
			return err
		}
	}
	return checkCall(n.function, n.args, 1)
}

// checkCall checks a call's number of operands, and that the first is a path.
func checkCall(function string, args []operand, want int) error {
	if len(args) != want {
		return refusalf("Incorrect number of operands for operator or function; operator or function: %s, number of operands: %d", function, len(args))
	}
	if args[0].kind != operandPath {
		return refusalf("Operator or function requires a document path; operator or function: %s", function)
	}
	return nil
}

// parseCondition parses a condition expression.
func parseCondition(text string) (*condition, error) {
	p := newParser(text)
	n, err := p.parseOr()
	if err == nil && p.peek().kind != tokenEnd {
		err = p.syntaxError()
	}
	if err == nil {
		err = p.problem
	}
	if err != nil {
		return nil, err
	}
	return &condition{root: n, uses: p.uses}, nil
}

func (p *parser) parseOr() (node, error) {
	left, err := p.parseAnd()
	for err == nil && p.skipKeyword("OR") {
		var right node
		right, err = p.parseAnd()
		left = or{left, right}
	}
	return left, err
}

func (p *parser) parseAnd() (node, error) {
	left, err := p.parseNot()
	for err == nil && p.skipKeyword("AND") {
		var right node
		right, err = p.parseNot()
		left = and{left, right}
	}
	return left, err
}

func (p *parser) parseNot() (node, error) {
	if p.skipKeyword("NOT") {
		inner, err := p.parseNot()
		return not{inner}, err
	}
	if p.skip("(") {
		return p.parseGroup()
	}
	return p.parsePredicate()
}

// parseGroup reads the rest of a condition in parentheses. The service refuses
// parentheses directly around parentheses.
func (p *parser) parseGroup() (node, error) {
	inner, err := p.parseOr()
	if err != nil {
		return nil, err
	}
	if !p.skip(")") {
		return nil, p.syntaxError()
	}
	if _, ok := inner.(group); ok {
		return nil, refusal("The expression has redundant parentheses;")
	}
	return group{inner}, nil
}

// parsePredicate reads attribute_exists, attribute_not_exists or a comparison.
func (p *parser) parsePredicate() (node, error) {
	if function := p.peek().text; function == "attribute_exists" || function == "attribute_not_exists" {
		if p.tokens[p.at+1].text == "(" {
			return p.parseExists(function)
		}
	}
	left, err := p.parseOperand(p.checkConditionFunction)
	if err != nil {
		return nil, err
	}
	operator, ok := p.parseComparator()
	if !ok {
		if left.kind == operandCall && p.problem != nil {
			return nil, p.problem // the function is wrong, not what follows it
		}
		return nil, p.syntaxError()
	}
	right, err := p.parseOperand(p.checkConditionFunction)
	return compare{operator, left, right}, err
}

func (p *parser) parseExists(function string) (node, error) {
	args, err := p.parseCall(p.checkConditionFunction)
	if err != nil {
		return nil, err
	}
	if _, ok := p.parseComparator(); ok {
		p.checkConditionFunction(function)
		_, err = p.parseOperand(p.checkConditionFunction)
	}
	return exists{function, args}, err
}

func (p *parser) parseComparator() (string, bool) {
	for _, operator := range []string{"=", "<>", "<", "<=", ">", ">="} {
		if p.skip(operator) {
			return operator, true
		}
	}
	return "", false
}

// checkConditionFunction notes a problem with a function that stands for a
// value: no function that this package knows does so in a condition.
func (p *parser) checkConditionFunction(name string) {
	switch name {
	case "attribute_exists", "attribute_not_exists":
		p.note("The function is not allowed to be used this way in an expression; function: %s", name)
	case "if_not_exists":
		p.note("The function is not allowed in a condition expression; function: %s", name)
	default:
		p.note("Invalid function name; function: %s", name)
	}
}
