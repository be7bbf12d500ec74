/** The words of titles. None of them has three consecutive letters of `SEARCH_WORD`. */
export const WORDS = `
amber anchor answer apple april arch arrow attic autumn badge baker ballad bamboo barrel basin beacon bear bell bench berry birch bird
blanket blossom boat bonfire book border bottle bread breeze bridge bronze brook brush bucket button cabin cable camel camp canal candle
canyon carpet castle cedar chalk channel chapel cherry chess chorus cinder circle city clay cliff clock cloud clover coast comet compass
copper coral cotton county cradle crane creek cricket crown crystal curtain dance dawn deer delta desert diary dome donkey dragon drum dune
dust eagle echo ember empire engine evening fable falcon farm feather fern ferry fiddle field fire fisher flame flute fog forest forge
fountain fox garden garnet gate glacier glass globe goose gravel guitar gull hammer hazel hearth heron hill holly honey horizon horse
island ivory ivy jacket jasmine jewel journey jungle juniper kettle kingdom kitchen ladder lake lantern lark lemon lesson letter library
lily linen lion lizard lotus lumber maple marble market meadow melody mill mirror monsoon moon morning mountain museum music mustard
needle nest night north novel oak oasis ocean olive orchard otter owl paddle palace palm paper parade path pearl pebble pepper piano
pilot pine planet plum poem pony poppy port prairie prism puzzle quarry quartz quilt rabbit rain raven reef ribbon river robin rocket
rose saddle sail salmon salt sand satin school sea shadow shell ship silk silver sketch sky smoke snow song spark sparrow spice spring
square star station stone storm story street summer sun swan table tea temple theatre thunder tide tiger timber torch tower train
travel tulip tunnel turtle valley velvet village vine violet voyage wagon walnut water wave west whale wheat willow wind winter wolf
wood wool year zebra zephyr
`
  .trim()
  .split(/\s+/)

/** Occurs in exactly 2 000 titles, whatever the number of videos. */
export const SEARCH_WORD = 'kaleidoscope'
