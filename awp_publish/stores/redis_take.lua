-- Lease members of the queue KEYS[1] that are due: ARGV[1] seconds of lease, ARGV[2] how many at most.
local time = redis.call("TIME")
local now = time[1] + time[2] / 1000000
local members = redis.call("ZRANGEBYSCORE", KEYS[1], "-inf", string.format("%.6f", now), "LIMIT", 0, ARGV[2])
for _, member in ipairs(members) do
  redis.call("ZADD", KEYS[1], string.format("%.6f", now + ARGV[1]), member)
end
return members
