import 'side-effect';
import whole from 'whole';
import * as all from 'all';
import { one, two as renamed } from 'some';
import both, { more } from 'both';
import data from './data.json' with { type: 'json' };
import {
  first,
  second,
} from 'several';
export * from 'others';
export * as named from 'others';
export { one, renamed as two } from 'some';
const required = require('required');

/** Documentation of a function. */
export function plain(first, second = 2, ...rest) {
  console.log(first); // gone
  return second; // gone, and more of it
}

export default async function ({ name, value: { inner } = {} }, [head, ...tail]) {
  console.log(name, inner); // gone
  return [head, tail]; // gone
}

function* generator() {
  yield 'this is gone';
  yield 'this is gone too';
}

async function* stream(
  source,
) {
  yield 'this is gone';
  yield 'this is gone too';
}

export const arrow = async (value) => {
  console.log(value); // gone
  return value; // gone, and more of it
};

const expression = function named(value) {
  console.log(value); // gone
  return value; // gone, and more of it
};

const short = (value) => value + 1;

export class Forms extends whole.Base {
  static count = 0;
  #hidden = 1;

  static {
    console.log('this is gone');
    console.log('this is gone too');
  }

  constructor(first) {
    super(first); // gone
    this.first = first; // gone
  }

  get value() {
    console.log('this is gone');
    return this.#hidden; // gone
  }

  set value(value) {
    console.log('this is gone');
    this.#hidden = value; // gone
  }

  static async make() {
    console.log('this is gone');
    return new Forms(required); // gone
  }

  *[Symbol.iterator]() {
    yield 'this is gone';
    yield 'this is gone too';
  }

  #secret(value) {
    console.log(value); // gone
    return short(value); // gone
  }

  bound = (value) => {
    console.log(value); // gone
    return value; // gone, and more of it
  };
}

export const table = {
  method(value) {
    console.log(value); // gone
    return value; // gone, and more of it
  },
  async 'quoted name'() {
    console.log('this is gone');
    return data; // gone, and more of it
  },
  property: function (value) {
    console.log(value); // gone
    return value; // gone, and more of it
  },
};

describe('a suite', () => {
  console.log('this is gone');
  console.log('this is gone too');
});
