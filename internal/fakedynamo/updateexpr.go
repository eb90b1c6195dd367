package fakedynamo

import "strings"

// update is a parsed update expression: its actions in the order written.
type update struct {
	actions []action
	uses    uses
}

// action is SET path = left [operator right], or REMOVE path.
type action struct {
	path        path
	remove      bool
	operator    string // "", "+" or "-"
	left, right operand
}

// parseUpdate parses an update expression.
func parseUpdate(text string) (*update, error) {
	p := newParser(text)
	u := &update{}
	var repeated string // a section that stands twice
	seen := make(map[string]bool)
	for p.at == 0 || p.peek().kind != tokenEnd {
		section := p.peek()
		if !section.is("SET") && !section.is("REMOVE") {
			return nil, p.syntaxError()
		}
		name := strings.ToUpper(p.take().text)
		if seen[name] {
			repeated = name
		}
		seen[name] = true
		if err := p.parseSection(u, name == "REMOVE"); err != nil {
			return nil, err
		}
	}
	if p.problem == nil && repeated != "" {
		p.note("The \"%s\" section can only be used once in an update expression;", repeated)
	}
	u.uses = p.uses
	return u, p.problem
}

// parseSection reads the actions of one SET or REMOVE section.
func (p *parser) parseSection(u *update, remove bool) error {
	for {
		a := action{remove: remove}
		var err error
		if a.path, err = p.parsePath(); err != nil {
			return err
		}
		if !remove {
			if err := p.parseAssignment(&a); err != nil {
				return err
			}
		}
		u.actions = append(u.actions, a)
		if !p.skip(",") {
			return p.endOfSection()
		}
	}
}

// endOfSection checks that another section or the end follows.
func (p *parser) endOfSection() error {
	if k := p.peek().kind; k != tokenEnd && k != tokenKeyword {
		return p.syntaxError()
	}
	return nil
}

// parseAssignment reads the part of a SET action after its path.
func (p *parser) parseAssignment(a *action) error {
	if !p.skip("=") {
		return p.syntaxError()
	}
	var err error
	if a.left, err = p.parseOperand(p.checkUpdateFunction); err != nil {
		return err
	}
	for _, operator := range []string{"+", "-"} {
		if p.skip(operator) {
			a.operator = operator
			a.right, err = p.parseOperand(p.checkUpdateFunction)
			return err
		}
	}
	return nil
}

func (p *parser) checkUpdateFunction(name string) {
	switch name {
	case "if_not_exists":
	case "attribute_exists", "attribute_not_exists":
		p.note("The function is not allowed in an update expression; function: %s", name)
	default:
		p.note("Invalid function name; function: %s", name)
	}
}

// check finds the errors that depend on the placeholders, in the service's order.
func (u *update) check(e env) error {
	if err := e.definedNames(u.uses.names); err != nil {
		return err
	}
	for i, a := range u.actions {
		for _, b := range u.actions[:i] {
			if e.same(a.path, b.path, true) {
				return refusalf("Two document paths overlap with each other; must remove or rewrite one of these paths; path one: %s, path two: %s", e.show(b.path), e.show(a.path))
			}
		}
	}
	if err := e.definedValues(u.uses.values); err != nil {
		return err
	}
	for _, a := range u.actions {
		if err := a.checkOperands(e); err != nil {
			return err
		}
	}
	return nil
}

func (a action) checkOperands(e env) error {
	for _, o := range []operand{a.left, a.right} {
		if err := o.checkCalls(); err != nil {
			return err
		}
		if v := e.values[o.value]; a.operator != "" && v != nil && v.kind != "N" {
			return refusalf("Incorrect operand type for operator or function; operator or function: %s, operand type: %s", a.operator, v.kind)
		}
	}
	return nil
}

// checkCalls checks the calls of if_not_exists within an operand.
func (o operand) checkCalls() error {
	if o.kind != operandCall {
		return nil
	}
	if err := checkCall("if_not_exists", o.args, 2); err != nil {
		return err
	}
	return o.args[1].checkCalls()
}
