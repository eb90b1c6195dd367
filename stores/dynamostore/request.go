package dynamostore

import (
	"strconv"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

// request is an UpdateItem in the making, with room for its values: one allocation
// instead of one per value, because a cycle must not cost more than the raw SDK
// calls it consists of.
type request struct {
	in      dynamodb.UpdateItemInput
	key     types.AttributeValueMemberS
	strings [8]types.AttributeValueMemberS
	numbers [4]types.AttributeValueMemberN
	s, n    int // how many are in use
}

func (s *Store) request(name string, update, condition *string) *request {
	r := &request{key: types.AttributeValueMemberS{Value: name}}
	r.in = dynamodb.UpdateItemInput{
		TableName:                           &s.table,
		Key:                                 map[string]types.AttributeValue{"lock": &r.key},
		UpdateExpression:                    update,
		ConditionExpression:                 condition,
		ExpressionAttributeValues:           make(map[string]types.AttributeValue, 8),
		ReturnValuesOnConditionCheckFailure: types.ReturnValuesOnConditionCheckFailureAllOld,
	}
	return r
}

func (r *request) str(name, value string) {
	r.strings[r.s].Value = value
	r.in.ExpressionAttributeValues[name] = &r.strings[r.s]
	r.s++
}

func (r *request) num(name string, value int64) {
	r.numbers[r.n].Value = strconv.FormatInt(value, 10)
	r.in.ExpressionAttributeValues[name] = &r.numbers[r.n]
	r.n++
}

// keep sets :keep, rounded up: the TTL attribute counts whole seconds.
func (r *request) keep(until time.Time) {
	r.num(":keep", until.Add(time.Second-time.Nanosecond).Unix())
}
