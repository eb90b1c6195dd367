package fakedynamo

import "maps"

// apply returns the item that the update makes of old, nil if there is none.
// It shares with old the values that stay the same, and changes none of them.
func (u *preparedUpdate) apply(old item, keyName, key string) (item, *apiError) {
	it := maps.Clone(old)
	if it == nil {
		it = item{keyName: {kind: "S", text: key}}
	}
	if u.update == nil {
		return it, nil
	}
	values, err := u.assigned(it)
	if err != nil {
		return nil, err
	}
	d := draft{env: u.env, item: it, owned: make(map[*value]bool)}
	for i, a := range u.update.actions {
		parent, last := d.parent(a.path), u.env.name(a.path[len(a.path)-1])
		switch {
		case parent == nil && a.remove && old == nil:
			// The service lets a removal from nothing pass.
		case parent == nil:
			return nil, invalid("The document path provided in the update expression is invalid for update")
		case a.remove:
			delete(parent, last)
		default:
			parent[last] = values[i]
		}
	}
	if it.size() > maxItemBytes {
		return nil, invalid("Item size to update has exceeded the maximum allowed size")
	}
	return it, nil
}

// assigned evaluates the right-hand sides of all SET actions before any of
// them takes effect, so that they see the item as it was.
func (u *preparedUpdate) assigned(it item) ([]*value, *apiError) {
	values := make([]*value, len(u.update.actions))
	for i, a := range u.update.actions {
		if a.remove {
			continue
		}
		v, err := a.value(u.env, it)
		if err != nil {
			return nil, err
		}
		values[i] = v
	}
	return values, nil
}

// value evaluates the right-hand side of a SET action.
func (a action) value(e env, it item) (*value, *apiError) {
	left := a.left.eval(e, it)
	if left == nil {
		return nil, errMissing()
	}
	if a.operator == "" {
		return left, nil
	}
	right := a.right.eval(e, it)
	if right == nil {
		return nil, errMissing()
	}
	if left.kind != "N" || right.kind != "N" {
		return nil, invalid("An operand in the update expression has an incorrect data type")
	}
	sum, err := left.num.add(right.num, a.operator == "-")
	if err != nil {
		return nil, invalid(err.Error())
	}
	return number(sum), nil
}

func errMissing() *apiError {
	return invalid("The provided expression refers to an attribute that does not exist in the item")
}

// draft is an item in the making. Nested maps are copied when they are first
// changed; owned are the copies.
type draft struct {
	env   env
	item  item
	owned map[*value]bool
}

// parent returns the map in which the last element of a path lies, ready to be
// changed, or nil if there is none.
func (d draft) parent(p path) map[string]*value {
	m := map[string]*value(d.item)
	for _, element := range p[:len(p)-1] {
		name := d.env.name(element)
		v := m[name]
		if v == nil || v.kind != "M" {
			return nil
		}
		if !d.owned[v] {
			v = &value{kind: "M", m: maps.Clone(v.m)}
			d.owned[v] = true
			m[name] = v
		}
		m = v.m
	}
	return m
}

// returned picks the attributes that the request asked to have returned.
func (in *updateItemRequest) returned(u *preparedUpdate, old, it item) attributes {
	switch in.ReturnValues {
	case "ALL_NEW":
		return attributes{it}
	case "ALL_OLD":
		return attributes{old}
	case "UPDATED_NEW":
		if u.update != nil {
			return attributes{u.updated(it)}
		}
	}
	return attributes{}
}

// updated returns the part of the new item that the update's paths lead to,
// nested as it is there but without what lies beside it.
func (u *preparedUpdate) updated(it item) item {
	part := make(item)
	for _, a := range u.update.actions {
		v := u.env.lookup(it, a.path)
		if v == nil {
			continue
		}
		names := u.env.resolve(a.path)
		m := map[string]*value(part)
		for _, name := range names[:len(names)-1] {
			if m[name] == nil {
				m[name] = &value{kind: "M", m: make(map[string]*value)}
			}
			m = m[name].m
		}
		m[names[len(names)-1]] = v
	}
	return part
}
