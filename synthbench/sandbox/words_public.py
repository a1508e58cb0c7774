"""Domains of public life."""

from synthbench.sandbox.words_shared import DomainWords

DOMAINS = (
    DomainWords(
        name="construction",
        agent_type="person",
        agents=(
            "builder|construction worker; engineer; carpenter|woodworker; painter; electrician; "
            "bricklayer|mason; architect; roofer"
        ),
        places=(
            "at a construction site|at a building site; in the city centre|in the downtown area; "
            "near the river|close to the river; on the outskirts of town|in the suburbs; in a village; "
            "along the highway|beside the highway"
        ),
        scenes=(
            (
                "build|construct|erect: construction of; demolish|tear down|knock down: demolition of; "
                "inspect|examine|check: inspection of; paint; renovate|restore: renovation of|restoration of",
                "a house; a bridge; a tower; a wall; a hotel; a fence; a barn; a dam; a garage; a staircase",
            ),
            (
                "carry|haul|lug; lift|hoist; stack|pile up; cut; measure: measurement of",
                "planks|boards; bricks; pipes|tubes; steel beams|iron girders; stones|rocks; "
                "some timber|some lumber; tiles; logs",
            ),
        ),
    ),
    DomainWords(
        name="medicine",
        agent_type="person",
        agents=(
            "doctor|physician; nurse; surgeon; paramedic; dentist; medical student; midwife; psychiatrist"
        ),
        places=(
            "in a hospital|in a medical center; in an ambulance; "
            "in the emergency room|in the casualty department; in a nursing home|in a care home; "
            "at a health clinic; in a refugee camp"
        ),
        scenes=(
            (
                "examine|check: examination of; treat: treatment of; "
                "vaccinate|inoculate|immunize: vaccination of|inoculation of; "
                "comfort|console; discharge: discharge of",
                "a patient|a sick person; a baby|an infant; a pregnant woman|an expectant mother; "
                "an accident victim|a crash victim; a toddler; a pensioner|a senior citizen; a newborn; "
                "a disabled veteran",
            ),
            (
                "prescribe: prescription of; test|try out: testing of; order; store|stockpile; "
                "administer|give: administration of",
                "a drug|a medicine; a vaccine; antibiotics; painkillers|analgesics; an ointment|a salve; "
                "some insulin; vitamins; a sedative|a tranquilizer",
            ),
        ),
    ),
    DomainWords(
        name="education",
        agent_type="person",
        agents=(
            "teacher|schoolteacher; student|pupil; professor|lecturer; librarian; headmaster|principal; tutor"
        ),
        places=(
            "in a classroom|in a schoolroom; in the library|in the reading room; "
            "at a university|at a college; in the lecture hall; in the schoolyard|in the playground; "
            "at a desk; in a dormitory"
        ),
        scenes=(
            (
                "read|study; write|author; borrow; translate: translation of; copy; publish: publication of",
                "a book; a novel; a poem; an essay|a paper; a letter; a textbook|a schoolbook; "
                "a story|a tale; a dictionary; a diary|a journal; a biography",
            ),
            (
                "explain: explanation of; attend; cancel|call off: cancellation of; "
                "prepare|plan: preparation of; skip|miss",
                "a lesson; a lecture|a talk; an exam|an examination; a course; an experiment; "
                "a seminar|a workshop; a field trip|a school excursion; a graduation ceremony",
            ),
        ),
    ),
    DomainWords(
        name="politics",
        agent_type="person",
        agents=(
            "minister|cabinet minister; president|head of state; senator; mayor; diplomat|envoy; "
            "lawmaker|legislator; governor; chancellor"
        ),
        places=(
            "in parliament|in the legislature; in the capital|in the capital city; "
            "at a summit|at a top-level meeting; at a press conference|at a news conference; in Brussels; "
            "in Geneva; in Washington; in Moscow"
        ),
        scenes=(
            (
                "approve|endorse|back: approval of; reject|turn down: rejection of; sign: signing of; "
                "criticize|condemn|denounce: criticism of|condemnation of; discuss|debate: discussion of; "
                "delay|postpone: delay of|postponement of",
                "a law; a treaty|an accord|a pact; a budget|a spending plan; a tax cut|a tax reduction; "
                "a ceasefire|a truce; an education reform; a referendum; sanctions; a peace plan; "
                "a constitution",
            ),
            (
                "meet; appoint: appointment of; dismiss|fire|sack: dismissal of; praise|commend: praise of; "
                "accuse: accusation of",
                "an adviser|an aide; a judge; a spokesman|a spokesperson; a general|an army chief; "
                "an opposition leader; a journalist|a reporter; a union leader; a bishop; "
                "a central banker",
            ),
        ),
    ),
    DomainWords(
        name="business",
        agent_type="organisation",
        agents=(
            "company|firm|corporation; bank|lender; retailer|store chain; car maker|automaker; "
            "airline; startup; investor; insurer|insurance company"
        ),
        places=(
            "in Europe; in Asia; in China; in London; in the United States|in America; in Japan; "
            "in Africa; in the region|in the area"
        ),
        scenes=(
            (
                "buy|purchase|acquire: purchase of|acquisition of; sell: sale of; "
                "close|shut down: closure of; open: opening of; expand|enlarge: expansion of",
                "a factory|a plant; a supermarket|a grocery store; a mine; an oil field; a shipyard; "
                "a warehouse|a depot; a newspaper; a call center; a power station",
            ),
            (
                "report|announce: announcement of; expect|forecast|predict: forecast of|prediction of; "
                "deny: denial of; hide|conceal: concealment of",
                "a profit; a loss; a merger; a dividend; a price rise|a price increase; "
                "job cuts|layoffs; a takeover bid; a bankruptcy",
            ),
            (
                "launch|introduce|unveil: launch of|introduction of; "
                "recall|withdraw: recall of|withdrawal of; "
                "produce|manufacture: production of|manufacture of; "
                "test|try out: testing of; export: export of",
                "a smartphone|a mobile phone; a laptop|a notebook computer; electric cars|electric vehicles; "
                "a tablet; washing machines; a video game; batteries; a sports watch",
            ),
        ),
    ),
    DomainWords(
        name="crime",
        agent_type="person",
        agents=(
            "police officer|policeman|cop; detective|investigator; security guard; "
            "border guard; special agent|secret agent; soldier|trooper; sheriff"
        ),
        places=(
            "outside a bank; in a jewelry store; outside a nightclub|outside a club; at the airport; "
            "in a prison|in a jail; in an apartment|in a flat; near the border|close to the border; "
            "in a parking lot|in a car park"
        ),
        scenes=(
            (
                "arrest|detain|apprehend: arrest of|detention of; "
                "question|interrogate: questioning of|interrogation of; "
                "chase|run after|pursue: pursuit of; shoot|gun down: shooting of; "
                "identify: identification of; release|free: release of",
                "a suspect; a burglar; a drug dealer|a drug trafficker; a smuggler; "
                "a protester|a demonstrator; a gang member|a gangster; a hacker; a murderer|a killer; "
                "a fugitive; a pickpocket",
            ),
            (
                "seize|confiscate: seizure of|confiscation of; examine|inspect: examination of; "
                "steal: theft of; hide|conceal: concealment of; photograph; destroy: destruction of",
                "a gun|a firearm; some cocaine; some cash|some money; diamonds; a painting; a knife; "
                "a bomb|an explosive device; a passport; a safe|a strongbox; cigarettes",
            ),
        ),
    ),
    DomainWords(
        name="science",
        agent_type="person",
        agents=(
            "scientist|researcher; astronomer; astronaut; biologist; chemist; physicist; "
            "technician|lab assistant; explorer"
        ),
        places=(
            "in the laboratory|in the lab; at an observatory; on an expedition|on a research trip; "
            "in Antarctica|at the South Pole; in the desert; in the rainforest|in the jungle; "
            "at a research center|at a research institute"
        ),
        scenes=(
            (
                "discover: discovery of; study|investigate|examine: study of|investigation of; "
                "photograph; describe: description of",
                "a comet; a planet; a galaxy; a fossil; a dinosaur skeleton; a virus; a new species; "
                "a gene; a volcano; a meteorite; an asteroid",
            ),
            (
                "test|try out: testing of; install|set up: installation of; repair|fix|mend: repair of; "
                "operate: operation of; switch off|turn off",
                "a telescope; a satellite; a rocket; a robot; a microscope; a space probe|a spacecraft; "
                "a laser; solar panels; a supercomputer; a particle detector",
            ),
        ),
    ),
)
