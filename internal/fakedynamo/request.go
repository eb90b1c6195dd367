package fakedynamo

// maxNesting is the service's limit on maps and lists within each other.
const maxNesting = 31

// errNesting is the one error of reading a request that is about its values.
const errNesting = refusal("Nesting Levels have exceeded supported limits")

// updateItemRequest is the body of UpdateItem. A request with any other member
// is refused, because what it asks for would not be done.
type updateItemRequest struct {
	TableName                           string
	Key                                 map[string]*wireValue
	UpdateExpression                    *string
	ConditionExpression                 *string
	ExpressionAttributeNames            map[string]string
	ExpressionAttributeValues           map[string]*wireValue
	ReturnValues                        string
	ReturnValuesOnConditionCheckFailure string
}

// wireValue is an attribute value as it comes in a request. Sets are missing,
// because the store has no use for them.
type wireValue struct {
	S, N, B    *string
	BOOL, NULL *bool
	M          map[string]*wireValue
	L          []*wireValue
}

// decodeUpdateItem reads the body of UpdateItem. After an error the request
// holds what was read before it.
func decodeUpdateItem(body []byte) (*updateItemRequest, *apiError) {
	in := new(updateItemRequest)
	r := &jsonReader{data: body}
	err := r.object(false, func(name string) error { return in.readMember(r, name) })
	if err == nil && !r.ended() {
		err = r.unexpected("the end")
	}
	switch err {
	case nil:
		return in, nil
	case errNesting:
		return in, invalid(err.Error())
	}
	return in, serialization(err)
}

func (in *updateItemRequest) readMember(r *jsonReader, name string) (err error) {
	switch name {
	case "TableName":
		in.TableName, err = r.text()
	case "Key":
		in.Key, err = readValues(r, 0)
	case "UpdateExpression":
		in.UpdateExpression, err = readText(r)
	case "ConditionExpression":
		in.ConditionExpression, err = readText(r)
	case "ExpressionAttributeNames":
		in.ExpressionAttributeNames = make(map[string]string)
		err = r.object(false, func(name string) (err error) {
			in.ExpressionAttributeNames[name], err = r.text()
			return err
		})
	case "ExpressionAttributeValues":
		in.ExpressionAttributeValues, err = readValues(r, 0)
	case "ReturnValues":
		in.ReturnValues, err = r.text()
	case "ReturnValuesOnConditionCheckFailure":
		in.ReturnValuesOnConditionCheckFailure, err = r.text()
	default:
		err = refusalf("fakedynamo does not support the member %q", name)
	}
	return err
}

// readText reads a string whose absence means something.
func readText(r *jsonReader) (*string, error) {
	s, err := r.text()
	return &s, err
}

// readValues reads an object of attribute values that lies within depth maps
// and lists.
func readValues(r *jsonReader, depth int) (map[string]*wireValue, error) {
	values := make(map[string]*wireValue)
	err := r.object(true, func(name string) error {
		v, err := readValue(r, depth)
		values[name] = v
		return err
	})
	return values, err
}

// readValue reads an attribute value, nil if it is null.
func readValue(r *jsonReader, depth int) (*wireValue, error) {
	if r.skipWord("null") {
		return nil, nil
	}
	if depth > maxNesting {
		return nil, errNesting
	}
	w := new(wireValue)
	err := r.object(false, func(name string) error { return w.readMember(r, name, depth) })
	return w, err
}

func (w *wireValue) readMember(r *jsonReader, name string, depth int) (err error) {
	switch name {
	case "S":
		w.S, err = readText(r)
	case "N":
		w.N, err = readText(r)
	case "B":
		w.B, err = readText(r)
	case "BOOL":
		w.BOOL, err = readBoolean(r)
	case "NULL":
		w.NULL, err = readBoolean(r)
	case "M":
		w.M, err = readValues(r, depth+1)
	case "L":
		w.L = make([]*wireValue, 0)
		err = r.array(func() error {
			v, err := readValue(r, depth+1)
			w.L = append(w.L, v)
			return err
		})
	default:
		err = refusalf("fakedynamo does not support the member %q of an attribute value", name)
	}
	return err
}

func readBoolean(r *jsonReader) (*bool, error) {
	b, err := r.boolean()
	return &b, err
}
