package main

// company has the bugs in how the DynamoDB store sends requests together.
var company = []mutant{
	{
		file: "stores/dynamostore/queue.go", breaks: "P1", bug: "a member gets the answer of another",
		old: `q.answer(m, all[i], panicked)`,
		new: `q.answer(m, all[len(all)-1-i], panicked)`,
		by:  "TestConformanceInCompany",
	},
	{
		file: "stores/dynamostore/queue.go", breaks: "F14", bug: "two claims of a name make the service refuse the whole request",
		old: `slices.ContainsFunc(taken, func(t *member) bool { return t.name == m.name })`,
		new: `slices.ContainsFunc(taken, func(t *member) bool { return t == m })`,
		by:  "TestOneNameTwice",
	},
	{
		file: "stores/dynamostore/queue.go", breaks: "P4, F3", bug: "a claim is sent after its caller has gone",
		old: `		case m.ctx.Err() != nil:
`,
		new: `		case m.ctx == nil:
`,
		by: "TestContextEndsAtDeparture",
	},
	{
		file: "stores/dynamostore/queue.go", breaks: "F2", bug: "the first caller that goes ends the request of all",
		old: `m.travel.callers > 0 {`,
		new: `m.travel.callers < 0 {`,
		by:  "TestRequestLivesAsLongAsItsMembers",
	},
	{
		file: "stores/dynamostore/statement.go", breaks: "P5", bug: "an event is written into a text whatever it means there",
		old: "`^[\\w/-][\\w:/-]*$`",
		new: "`.`",
		by:  "TestInDoubtAlone",
	},
	{
		file: "stores/dynamostore/statement.go", breaks: "F20", bug: "everybody waits for a request of any size",
		old: `maxCompanySize = 16 << 10`,
		new: `maxCompanySize = 16 << 20`,
		by:  "TestInDoubtAlone",
	},
	{
		file: "stores/dynamostore/member.go", breaks: "P4, F2", bug: "a claim that the server failed to answer counts as not applied",
		old: `code, status = "InternalServerError", http.StatusInternalServerError`,
		new: `code = "InternalServerError"`,
		by:  "TestMemberErrors",
	},
	{
		file: "stores/dynamostore/member.go", breaks: "P4", bug: "a known name whose row was deleted is never granted",
		old: `		if len(e.Item) <= 1 {
			return errInDoubt
		}
`,
		new: ``,
		by:  "TestDeletedRow",
	},
	{
		file: "stores/dynamostore/company.go", breaks: "F40", bug: "a denied name stops all from travelling together",
		old: `case !isAllowed(err): // so it was not the statement`,
		new: `case !isAllowed(err) && !errors.Is(together, errDenied):`,
		by:  "TestDenied",
	},
	{
		file: "stores/dynamostore/queue.go", breaks: "F11", bug: "claims run out of time behind eight slow requests",
		old: `for len(q.waiting) >= maxStatements || `,
		new: `for `,
		by:  "TestFullRequestsWaitForNobody",
	},
	{
		file: "stores/dynamostore/queue.go", breaks: "F11", bug: "claims wait as long as eight requests hang",
		old: `(q.requests < maxRequests || q.waited >= patience)`,
		new: `q.requests < maxRequests`,
		by:  "TestHungRequestsHoldUpNobody",
	},
	{
		file: "stores/dynamostore/queue.go", breaks: "F39", bug: "a batch counts the callers of another as its own",
		old: `q.callers[m.batch] >= m.batch.Claims`,
		new: `len(q.waiting)+maxStatements*q.requests >= m.batch.Claims`,
		by:  "TestBatchesAtTheSameTime",
	},
	{
		file: "stores/dynamostore/queue.go", breaks: "F17", bug: "a request goes on after its last caller has gone",
		old: `	m.travel.cancel()
	return true
`,
		new: `	m.travel.cancel()
	return false
`,
		by: "TestRequestEndsBeforeItsLastCaller",
	},
	{
		file: "stores/dynamostore/company.go", breaks: "P5", bug: "a claim that a server applied without returning the row forgets what was completed",
		old: `if err == nil && tried.returning && len(out.Attributes) <= 1 {`,
		new: `if err == nil && tried.returning && out == nil {`,
		by:  "TestMemoryWithoutReturning",
	},
	{
		file: "stores/dynamostore/company.go", breaks: "P4", bug: "no record of a batch gets its lock in a table that is named by its ARN",
		old: `strings.HasPrefix(s.table, "arn:")`,
		new: `strings.HasPrefix(s.table, ":arn")`,
		by:  "TestDenied",
	},
	{
		file: "middleware/batch.go", breaks: "F20", bug: "each record of a group waits for company that never comes",
		old: `min(d.claims(), len(d.ready))`,
		new: `d.claims()`,
		by:  "TestBatchTellsHowManyClaims",
	},
}
