local row = redis.call('HMGET', key, 'rowFormat', 'ownerToken', 'line')
if row[1] or not row[2] then
  return answer(0, '', '')
end
redis.call('HSET', key, 'line', micros(tonumber(row[3] or '0') + 1))
return answer(1, '', '')
