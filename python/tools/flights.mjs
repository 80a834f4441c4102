// Writes flights as CSV files, from the npm package vega-datasets: `node flights.mjs FILE DIRECTORY`. Beside the
// program are the packages hyparquet and hyparquet-compressors.
//
// FILE is flights-3m.parquet, which has the departures within the United States in the first half of 2001: 3,000,000
// lines of a date, the delay in minutes, the distance in miles, origin and destination. Those of January to May are in
// train.csv, and those of June in test.csv; six of July are in neither.
import fs from 'node:fs'
import path from 'node:path'
import { asyncBufferFromFile, parquetReadObjects } from 'hyparquet'
import { compressors } from 'hyparquet-compressors'

const wanted = 3000000
const header = 'date,month,weekday,hour,minute,origin,destination,distance,delay\n'
// Lines to write at a time.
const block = 10000

// Monday is 1, and the minute is that of the day.
function line(row) {
  const { date, delay, distance, origin, destination } = row
  const weekday = date.getUTCDay() === 0 ? 7 : date.getUTCDay()
  const hour = date.getUTCHours()
  const minute = 60 * hour + date.getUTCMinutes()
  const day = date.toISOString().slice(0, 10)
  return `${day},${month(row)},${weekday},${hour},${minute},${origin},${destination},${distance},${delay}\n`
}

function write(file, rows) {
  const out = fs.openSync(file, 'w')
  fs.writeSync(out, header)
  for (let begin = 0; begin < rows.length; begin += block) {
    fs.writeSync(out, rows.slice(begin, begin + block).map(line).join(''))
  }
  fs.closeSync(out)
}

if (process.argv.length !== 4) throw new Error('usage: node flights.mjs FILE DIRECTORY')
const [source, directory] = process.argv.slice(2)
const rows = await parquetReadObjects({ file: await asyncBufferFromFile(source), compressors })
if (rows.length !== wanted) throw new Error(`${source} has ${rows.length} lines; expected: ${wanted}`)
const month = ({ date }) => date.getUTCMonth() + 1
fs.mkdirSync(directory, { recursive: true })
write(path.join(directory, 'train.csv'), rows.filter((row) => month(row) <= 5))
write(path.join(directory, 'test.csv'), rows.filter((row) => month(row) === 6))
