local token, stamp = ARGV[1], ARGV[2]

local row = redis.call('HMGET', key, 'rowFormat', 'ownerToken', 'stamp', 'marks')
if row[1] or token == '' or row[2] ~= token then
  return answer(0, '', '')
end
redis.call('HSET', key, 'marks', micros(tonumber(row[4] or '0') + 1))
if earlier(row[3], stamp) then
  redis.call('HSET', key, 'stamp', stamp)
end
return answer(1, '', '')
