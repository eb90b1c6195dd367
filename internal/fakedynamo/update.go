package fakedynamo

import "fmt"

// maxKeyBytes is the service's limit on the size of a partition key.
const maxKeyBytes = 2048

// partitionKey returns the string of the only key attribute, or "".
func (in *updateItemRequest) partitionKey() string {
	for _, v := range in.Key {
		if len(in.Key) == 1 && v != nil && v.S != nil {
			return *v.S
		}
	}
	return ""
}

// preparedUpdate is an UpdateItem request that is right as far as can be told
// without the table.
type preparedUpdate struct {
	env       env
	update    *update    // nil for none
	condition *condition // nil for none
}

// updateItem carries out UpdateItem. Errors are looked for in the service's
// order: the request by itself, the table, the key, the condition, the update.
func (s *Server) updateItem(in *updateItemRequest) (response, *apiError) {
	u, err := s.prepare(in)
	if err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	t := s.tables[in.TableName]
	if t == nil {
		return nil, failure(dynamoType+"ResourceNotFoundException", "Requested resource not found")
	}
	if err := t.checkKey(in, u); err != nil {
		return nil, err
	}
	key := in.partitionKey()
	old := t.items[key]
	if u.condition != nil && !u.condition.root.eval(u.env, old) {
		err := failure(dynamoType+"ConditionalCheckFailedException", "The conditional request failed")
		if in.ReturnValuesOnConditionCheckFailure == "ALL_OLD" {
			err.item = old
		}
		return nil, err
	}
	it, err := u.apply(old, t.key, key)
	if err != nil {
		return nil, err
	}
	t.items[key] = it
	return in.returned(u, old, it), nil
}

// prepare checks a request and parses its expressions.
func (s *Server) prepare(in *updateItemRequest) (*preparedUpdate, *apiError) {
	if err := in.checkParameters(); err != nil {
		return nil, err
	}
	if err := in.checkNames(); err != nil {
		return nil, err
	}
	values, err := in.decodeValues()
	if err != nil {
		return nil, err
	}
	u := &preparedUpdate{env: env{names: in.ExpressionAttributeNames, values: values}}
	if err := s.prepareExpressions(in, u); err != nil {
		return nil, err
	}
	for _, v := range in.Key {
		if _, err := v.decode(); err != nil {
			return nil, invalid(err.Error())
		}
	}
	return u, nil
}

// prepareExpressions parses the expressions and checks that they and the
// placeholders fit each other.
func (s *Server) prepareExpressions(in *updateItemRequest, u *preparedUpdate) *apiError {
	var first, second uses
	if in.UpdateExpression != nil {
		parsed, err := s.updates.get(*in.UpdateExpression)
		if err == nil {
			err = parsed.check(u.env)
		}
		if err != nil {
			return invalid("Invalid UpdateExpression: " + err.Error())
		}
		u.update, first = parsed, parsed.uses
	}
	if in.ConditionExpression != nil {
		parsed, err := s.conditions.get(*in.ConditionExpression)
		if err == nil {
			err = parsed.root.check(u.env)
		}
		if err != nil {
			return invalid("Invalid ConditionExpression: " + err.Error())
		}
		u.condition, second = parsed, parsed.uses
	}
	if rest := unused(u.env.names, first.names, second.names); rest != "" {
		return invalid("Value provided in ExpressionAttributeNames unused in expressions: keys: " + rest)
	}
	if rest := unused(u.env.values, first.values, second.values); rest != "" {
		return invalid("Value provided in ExpressionAttributeValues unused in expressions: keys: " + rest)
	}
	return nil
}

// checkParameters checks the members that are neither expressions nor values.
func (in *updateItemRequest) checkParameters() *apiError {
	const enum = "1 validation error detected: Value '%s' at '%s' failed to satisfy constraint: Member must satisfy enum value set: [%s]"
	switch in.ReturnValues {
	case "", "NONE", "ALL_NEW", "ALL_OLD", "UPDATED_NEW":
	case "UPDATED_OLD":
		return invalid("fakedynamo does not return UPDATED_OLD")
	default:
		return invalid(fmt.Sprintf(enum, in.ReturnValues, "returnValues", "ALL_NEW, UPDATED_OLD, ALL_OLD, NONE, UPDATED_NEW"))
	}
	switch in.ReturnValuesOnConditionCheckFailure {
	case "", "NONE", "ALL_OLD":
	default:
		return invalid(fmt.Sprintf(enum, in.ReturnValuesOnConditionCheckFailure, "returnValuesOnConditionCheckFailure", "ALL_OLD, NONE"))
	}
	const null = "1 validation error detected: Value null at '%s' failed to satisfy constraint: Member must not be null"
	if in.TableName == "" {
		return invalid(fmt.Sprintf(null, "tableName"))
	}
	if in.Key == nil {
		return invalid(fmt.Sprintf(null, "key"))
	}
	if in.UpdateExpression != nil || in.ConditionExpression != nil {
		return nil
	}
	if in.ExpressionAttributeNames != nil {
		return invalid("ExpressionAttributeNames can only be specified when using expressions")
	}
	if in.ExpressionAttributeValues != nil {
		return invalid("ExpressionAttributeValues can only be specified when using expressions: UpdateExpression and ConditionExpression are null")
	}
	return nil
}

// checkNames checks ExpressionAttributeNames by itself.
func (in *updateItemRequest) checkNames() *apiError {
	if in.ExpressionAttributeNames != nil && len(in.ExpressionAttributeNames) == 0 {
		return invalid("ExpressionAttributeNames must not be empty")
	}
	for placeholder, name := range in.ExpressionAttributeNames {
		if !isPlaceholder(placeholder, '#') {
			return invalid("ExpressionAttributeNames contains invalid key: Syntax error; key: \"" + placeholder + "\"")
		}
		if name == "" {
			return invalid("ExpressionAttributeNames contains invalid value: Empty attribute name for key " + placeholder)
		}
	}
	return nil
}

// decodeValues checks and decodes ExpressionAttributeValues.
func (in *updateItemRequest) decodeValues() (map[string]*value, *apiError) {
	if in.ExpressionAttributeValues != nil && len(in.ExpressionAttributeValues) == 0 {
		return nil, invalid("ExpressionAttributeValues must not be empty")
	}
	values := make(map[string]*value, len(in.ExpressionAttributeValues))
	for placeholder, w := range in.ExpressionAttributeValues {
		if !isPlaceholder(placeholder, ':') {
			return nil, invalid("ExpressionAttributeValues contains invalid key: Syntax error; key: \"" + placeholder + "\"")
		}
		v, err := w.decode()
		if err != nil {
			return nil, invalid("ExpressionAttributeValues contains invalid value: " + err.Error() + " for key " + placeholder)
		}
		values[placeholder] = v
	}
	return values, nil
}

func isPlaceholder(text string, mark byte) bool {
	return len(text) > 1 && text[0] == mark && endOfWord(text, 1) == len(text)
}

// checkKey checks the key against the table, and that the update leaves the
// key attribute alone.
func (t *table) checkKey(in *updateItemRequest, u *preparedUpdate) *apiError {
	v, ok := in.Key[t.key]
	if !ok || v == nil || v.S == nil || len(in.Key) != 1 {
		return invalid("The provided key element does not match the schema")
	}
	if *v.S == "" {
		return invalid("One or more parameter values are not valid. The AttributeValue for a key attribute cannot contain an empty string value. Key: " + t.key)
	}
	if len(*v.S) > maxKeyBytes {
		return invalid("One or more parameter values were invalid: Size of hashkey has exceeded the maximum size limit of2048 bytes")
	}
	if u.update != nil {
		for _, a := range u.update.actions {
			if u.env.name(a.path[0]) == t.key {
				return invalid("One or more parameter values were invalid: Cannot update attribute " + t.key + ". This attribute is part of the key")
			}
		}
	}
	return nil
}
