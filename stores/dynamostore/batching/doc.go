// Package batching sends the locks of many records in one request to DynamoDB,
// for handlers of batches with a middleware.Concurrency of 200:
//
//	store := dynamostore.New(batching.Client(client), "locks")
//
// It is experimental: it has run against two servers with DynamoDB's API, and
// not yet in an AWS account. See
// https://github.com/lambdalock/lambdalock/blob/main/docs/GUIDE.md#many-locks-in-one-request.
//
// # Permissions
//
// The function needs dynamodb:PartiQLInsert and dynamodb:PartiQLUpdate on the
// table, besides dynamodb:UpdateItem.
//
// # A client in front
//
// The store sends what it always does and decides what an answer means, so one
// rule holds for a claim that travels alone and for one in company. The client
// in front translates an UpdateItem to PartiQL, with the same condition, and
// gives each caller the answer that UpdateItem would have had. It knows a claim
// and a release by their expressions, which both packages have from a third,
// and translates nothing else.
//
// A claim of a name that may have no row is an INSERT, because UPDATE creates
// none; a late copy of it cannot touch a row that exists. What a statement
// leaves in doubt is sent again as UpdateItem, and a kind of statement that the
// server calls invalid is not tried twice.
//
// Sources:
// https://docs.aws.amazon.com/amazondynamodb/latest/APIReference/API_BatchExecuteStatement.html
// and
// https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/ql-reference.html.
package batching
